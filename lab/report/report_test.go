package report

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"ngxlab/lab"
	"ngxlab/lab/capacity"
	"ngxlab/templates"
)

func markdown(t *testing.T, r lab.Results) string {
	t.Helper()
	return written(t, r, templates.ReportMarkdown)
}

func page(t *testing.T, r lab.Results) string {
	t.Helper()
	return written(t, r, templates.ReportHTML)
}

// written is one of the report's texts, without drawing the pictures that go beside it.
func written(t *testing.T, r lab.Results, write func(io.Writer, templates.Report) error) string {
	t.Helper()
	var b bytes.Buffer
	doc, _, err := build(r, Options{})
	if err == nil {
		err = write(&b, doc)
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func wants(t *testing.T, text string, all ...string) {
	t.Helper()
	for _, want := range all {
		if !strings.Contains(text, want) {
			t.Errorf("the report lacks %q", want)
		}
	}
}

func TestSameResultsGiveTheSameBytes(t *testing.T) {
	// Both documents hold everything that maps could shuffle.
	first := page(t, fakeResults(t)) + markdown(t, fakeResults(t))
	if again := page(t, fakeResults(t)) + markdown(t, fakeResults(t)); again != first {
		t.Fatal("two reports of the same results differ")
	}
}

func TestPageNeedsNothingFromOutside(t *testing.T) {
	text := page(t, fakeResults(t))
	for _, bad := range []string{"<script", "<link", "<img", " src=", "url(", "@import", `href="http`} {
		if strings.Contains(text, bad) {
			t.Errorf("the page contains %q", bad)
		}
	}
}

func TestInvalidFigureNeverAppearsUnmarked(t *testing.T) {
	r := fakeResults(t)
	text, html := markdown(t, r), page(t, r)
	for _, figure := range []string{"77,780", "12,350"} { // goodput of the invalid runs, as printed
		all, struck := strings.Count(text, figure), strings.Count(text, "~~"+figure+"~~ ✗")
		if all == 0 || all != struck {
			t.Errorf("Markdown: %s appears %d times, struck %d times", figure, all, struck)
		}
		all, struck = strings.Count(html, figure), strings.Count(html, "<del>"+figure+"</del>")
		if all == 0 || all != struck {
			t.Errorf("HTML: %s appears %d times, struck %d times", figure, all, struck)
		}
	}
	wants(t, text, "invalid: `count-mismatch`", "the round is lost for this cell", "repeated: attempt 2 is clean")
	wants(t, html, "Not drawn, every run invalid: goodput of file cache at ab 100 close")
}

// rowOf returns the cells of the table row that begins with the state, below the heading.
func rowOf(t *testing.T, text, heading, state string) []string {
	t.Helper()
	_, below, found := strings.Cut(text, "# "+heading+"\n")
	if !found {
		t.Fatalf("no heading %q", heading)
	}
	for _, line := range strings.Split(below, "\n") {
		if strings.HasPrefix(line, "| "+state+" ") {
			var cells []string
			for _, c := range strings.Split(strings.Trim(line, "|"), "|") {
				cells = append(cells, strings.TrimSpace(c))
			}
			return cells
		}
	}
	t.Fatalf("no row %q below %q", state, heading)
	return nil
}

func TestEveryFigureOfTheMatrixCarriesItsMark(t *testing.T) {
	text := markdown(t, fakeResults(t))
	for _, c := range []struct{ heading, state, goodput, cpu, findings string }{
		{"wrk 10 keep-alive", "baseline", "✓", "✓", "none"},
		{"wrk 10 keep-alive", "access log off", "⚠", "⚠", "`host-speed`"},
		{"wrk 100 keep-alive", "sockets", "⚠", "✓", "`client-cpu`"},
		{"ab 100 close", "file cache", "✗", "✗", "invalid: `count-mismatch`"},
	} {
		row := rowOf(t, text, c.heading, c.state)
		if !strings.HasSuffix(row[1], c.goodput) || !strings.HasSuffix(row[2], c.cpu) || row[9] != c.findings {
			t.Errorf("%s at %s: %q", c.state, c.heading, row)
		}
	}
	if row := rowOf(t, text, "wrk 100 keep-alive", "sockets"); !strings.HasPrefix(row[1], "≥ ") || strings.HasPrefix(row[2], "≥") {
		t.Errorf("lower bound: %q", row)
	}
}

func TestUnknownIsNeverPrintedAsZero(t *testing.T) {
	r := fakeResults(t)
	if row := rowOf(t, markdown(t, r), "ab 100 close", "baseline"); row[5] != lab.Unknown {
		t.Errorf("the p99 that ab did not give: %q", row[5])
	}
	for i := range r.Runs {
		r.Runs[i].Figures, r.Runs[i].Histogram, r.Runs[i].Grade, r.Runs[i].Limit = nil, nil, "", ""
	}
	r.Plan.Facts, r.Capacity, r.Levels, r.Builds = nil, nil, nil, nil
	text := markdown(t, r)
	row := rowOf(t, text, "wrk 10 keep-alive", "baseline")
	for i, cell := range row[1:6] {
		if cell != lab.Unknown {
			t.Errorf("column %d of a run without figures: %q", i+1, cell)
		}
	}
	if row[7] != lab.Unknown || row[8] != lab.Unknown {
		t.Errorf("grade and limit: %q", row)
	}
	if host := rowOf(t, text, "Hosts", "memory"); host[1] != lab.Unknown {
		t.Errorf("memory of an unknown host: %q", host)
	}
}

func TestP99OfTooFewRequestsIsNotShown(t *testing.T) {
	r := fakeResults(t)
	for i := range r.Runs {
		r.Runs[i].Figures[lab.Requests] = 9999
	}
	row := rowOf(t, markdown(t, r), "wrk 10 keep-alive", "baseline")
	if row[5] != lab.Unknown || row[4] == lab.Unknown {
		t.Errorf("p50 and p99 of 9,999 requests: %q", row)
	}
}

func TestNothingThatIsNotANumberIsPrinted(t *testing.T) {
	r := fakeResults(t)
	for name, text := range map[string]string{"Markdown": markdown(t, r), "HTML": page(t, r)} {
		for _, bad := range []string{"NaN", "Inf", "%!", "-9223372036854775808", "<nil>", "±δ"} {
			if strings.Contains(text, bad) {
				t.Errorf("%s contains %q", name, bad)
			}
		}
	}
}

func TestSummarySaysWhatHelpsWhatDoesNotAndWhatIsUnknown(t *testing.T) {
	text := markdown(t, fakeResults(t))
	summary, _, _ := strings.Cut(text, "\n## ")
	wants(t, summary, "Helps: “access log off” +3", "Helps, by at least what is given, because the load generator was the limit: “sockets” +",
		"Makes no difference larger than ±5%: “file cache”", "All steps together, “sockets” over “baseline”: helps",
		"**Control (A/A).** The baseline was measured a second time in every round. Goodput differs by", "none that matters, as it should be",
		"Of 91 runs, 77 are clean, 7 warned and 7 invalid.")
}

func verdictOf(word lab.Word, m lab.Metric, state, over string) lab.Verdict {
	return lab.Verdict{Family: "steps", Word: word, Reasons: []string{"foreign-cpu in 12 of 12 runs"},
		Comparison: lab.Comparison{Target: "here", State: state, Over: over, Metric: m, Pairs: 6, Ratio: 1.02, Low: 0.97, High: 1.08}}
}

func TestSummaryIsHonestWhenNothingHelps(t *testing.T) {
	r := fakeResults(t)
	undecided := verdictOf(lab.Undecided, lab.Goodput, "access log off", "baseline")
	undecided.MoreRounds = 9
	unmeasured := verdictOf(lab.NotMeasurable, lab.Goodput, "file cache", "access log off")
	unmeasured.Comparison.Prevented = "5 of 6 rounds are incomplete"
	r.Verdicts = []lab.Verdict{undecided, unmeasured, verdictOf(lab.Hurts, lab.Goodput, "sockets", "file cache")}
	r.Plan.Experiment.Repeat.Control = true
	r.Campaign.Status = lab.StatusInterrupted
	text := markdown(t, r)
	wants(t, text, "No step was found to help.", "Could not be told: “access log off” +2% (−3% … +8%); about 9 more rounds would tell.",
		"Could not be measured: “file cache” (5 of 6 rounds are incomplete).", "Hurts: “sockets” +2%", "This campaign was interrupted",
		"nothing shows whether the intervals are honest", "Not judged: “access log off”, “file cache”, “sockets”.")
}

func TestStepsJudgedByTheirErrorsAreInTheSummary(t *testing.T) {
	r := fakeResults(t)
	v := verdictOf(lab.Helps, lab.ErrorRatio, "sockets", "file cache")
	v.Text = "errors 6.1% → 0%: helps: +6.5% good responses"
	r.Verdicts = append(r.Verdicts, v)
	summary, _, _ := strings.Cut(markdown(t, r), "\n## ")
	wants(t, summary, "**Errors.** “sockets” errors 6.1% → 0%: helps: +6.5% good responses.")
	if summary, _, _ := strings.Cut(markdown(t, fakeResults(t)), "\n## "); strings.Contains(summary, "**Errors.**") {
		t.Error("errors without a verdict on them")
	}
}

func TestControlThatDiffersCastsDoubt(t *testing.T) {
	r := fakeResults(t)
	v := verdictOf(lab.Contradicted, lab.Goodput, lab.ControlName, "baseline")
	v.Family, v.Comparison.Low = "control", 1.01
	r.Verdicts = []lab.Verdict{v}
	wants(t, markdown(t, r), "it should not, and every verdict on it deserves doubt")
	wants(t, page(t, r), "differs from the baseline")
}

func TestBuildThatAnotherMachineMadeSaysWhere(t *testing.T) {
	r := fakeResults(t)
	if text := markdown(t, r); strings.Contains(text, "copied to the target") {
		t.Error("a build of the target's own is said to be copied")
	}
	r.Builds[0].From = "this machine"
	wants(t, markdown(t, r), "- made on the machine that ngxlab ran on, and copied to the target")
	r.Builds[0].From = "here"
	wants(t, markdown(t, r), "- made on here, and copied to the target")
}

func TestReportSaysHowToRunItAgain(t *testing.T) {
	wants(t, markdown(t, fakeResults(t)), "ngxlab run quickstart.yaml", "name: quickstart\ntitle: What do", "`4f0c9d6f3a`", "`0.1.0`",
		"wrk -t1 -c10 -d2s -H 'Connection: keep-alive' http://127.0.0.1:8081/1k.bin", "seed: `123456789`")
}

func TestLeftOutKnobsAreNamedWithTheirCure(t *testing.T) {
	wants(t, markdown(t, fakeResults(t)), "- **kernel**: `sysctl net.core.somaxconn` on here: only root may write it", "give the host `sudo: true`")
}

func TestRulesNotEvaluatedAreSummarised(t *testing.T) {
	wants(t, markdown(t, fakeResults(t)), "### Not evaluated", "- `client-fds`: 91 runs (the tool printed no connect errors)", "nobody looked")
}

func TestCapacityWithoutConclusionSaysSo(t *testing.T) {
	r := fakeResults(t)
	r.Capacity = nil
	wants(t, markdown(t, r), "18 levels of held connections were measured, but nothing was concluded")
	r.Levels = nil
	wants(t, markdown(t, r), "Connections were to be held, but no level was measured.")
	r.Capacity = &lab.CapacityResult{Problem: "every level failed", Notes: []string{"idle: no level can be used"}}
	wants(t, markdown(t, r), "Nothing can be concluded: every level failed.", "- idle: no level can be used")
}

func TestOneRampHasNoIntervalInTheReport(t *testing.T) {
	r := fakeResults(t)
	for i := range r.Capacity.Fits {
		r.Capacity.Fits[i].Slopes, r.Capacity.Fits[i].NoInterval = r.Capacity.Fits[i].Slopes[:1], true
		r.Capacity.Fits[i].Low, r.Capacity.Fits[i].High = 0, 0
	}
	for i := range r.Capacity.Projections {
		r.Capacity.Projections[i].NoInterval = true
	}
	row := rowOf(t, markdown(t, r), "Idle connections (keep-alive, one request done)", "server")
	if row[2] != "none" {
		t.Errorf("interval of one ramp: %q", row)
	}
}

func TestAnonymousServerMemoryIsNotCalledPSS(t *testing.T) {
	r := fakeResults(t)
	for i := range r.Levels {
		r.Levels[i].Anonymous = true
	}
	concluded := capacity.Conclude(r.Plan, r.Levels)
	r.Capacity = &concluded
	row := rowOf(t, markdown(t, r), "Idle connections (keep-alive, one request done)", "server")
	if last := row[len(row)-1]; last != "anonymous resident memory of all server processes" {
		t.Errorf("server: %q", row)
	}
	wants(t, markdown(t, r), "idle: server memory is anonymous resident memory, for PSS cannot be read here")
}

func TestInvalidRunsTellTheirLoopModelAndWhatWasReadBack(t *testing.T) {
	r := fakeResults(t)
	for i := range r.Runs {
		r.Runs[i].Validity = lab.Invalid
	}
	text := markdown(t, r)
	wants(t, text, "Latency: closed loop", "in force at the server")
	if strings.Contains(text, "loop model unknown") {
		t.Error("the loop model of invalid runs is not told")
	}
}

func TestResumedCampaignShowsItsPartsApart(t *testing.T) {
	r := fakeResults(t)
	for i := range r.Runs {
		if r.Runs[i].Round > 3 {
			r.Runs[i].Part = 2
		}
	}
	wants(t, markdown(t, r), "\n### part 1\n", "\n### part 2\n", "has 2 parts, which are never compared with each other")
	if row := rowOf(t, markdown(t, r), "wrk 100 keep-alive", "baseline"); row[6] != "3" || strings.Contains(row[1], "…") {
		t.Errorf("three rounds have no interval: %q", row)
	}
}

func TestLeaveOneOutShowsTheEffectOfHavingTheStep(t *testing.T) {
	r := fakeResults(t)
	r.Plan.Experiment.Ladder.Kind = lab.LeaveOneOut
	states, err := lab.States(r.Plan.Experiment)
	if err != nil {
		t.Fatal(err)
	}
	r.Plan.States, r.Runs = states, nil
	r.Verdicts = []lab.Verdict{verdictOf(lab.Helps, lab.Goodput, lab.AllSteps, "without file cache")}
	text := markdown(t, r)
	wants(t, text, "| **file cache**", "| without file cache ", "Helps: “file cache” +2%")
}

func TestSeveralTargetsAreToldApart(t *testing.T) {
	r := fakeResults(t)
	r.Plan.Cells = append(r.Plan.Cells, lab.Cell{ID: lab.CellID{Target: "big", State: "baseline", Load: "wrk 10 keep-alive"}})
	files, err := Files(r, Options{})
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, f := range files {
		names[f.Name] = true
	}
	if !names["charts/ladder-here.png"] || !names["charts/goodput-here.png"] || names["charts/goodput-big.png"] {
		t.Errorf("files: %v", names)
	}
	wants(t, markdown(t, r), "\n### big\n", "\n### here\n", "here: Goodput.")
}

func TestPlanWithoutStatesIsAnError(t *testing.T) {
	if files, err := Files(lab.Results{}, Options{}); err == nil || files != nil {
		t.Errorf("%d files, error %v", len(files), err)
	}
}

func BenchmarkReportOf10000Runs(b *testing.B) {
	r := fakeResults(&testing.T{})
	runs := r.Runs
	for round := 1; len(r.Runs) < 10000; round++ {
		for _, run := range runs {
			run.Round += 6 * round
			r.Runs = append(r.Runs, run)
		}
	}
	for b.Loop() {
		if _, err := Files(r, Options{}); err != nil {
			b.Fatal(err)
		}
	}
}
