package templates

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"ngxlab/lab"
)

func sample() Report {
	return Report{Title: "Does <reuseport> help?", Footer: "campaign_1 & more", Sections: []Section{
		{ID: "summary", Blocks: []Block{{Paragraph: Text{{"Helps: ", Plain}, {"access_log | off", Strong}, {" by 38% *really*", Plain}}}}},
		{ID: "table", Title: "The table", Blocks: []Block{
			{Heading: "wrk_10"},
			{Table: &Table{Head: []string{"state", "goodput"}, Numbers: []bool{false, true}, Rows: [][]Text{
				{{{"baseline", Plain}}, {{"32,620", Plain}, {" (27,390 … 33,490)", Quiet}, {" ✓", Good}}},
				{{{"a|b `c`", Mono}}, {{"77,780", Struck}, {" ✗", Bad}}},
			}}},
			{List: []Text{{{"one", Plain}}, {{"two\nlines", Plain}}}},
			{Code: &Code{Language: "yaml", Text: "a: \"```\"\n"}},
			{Figure: &Figure{File: "charts/goodput.png", SVG: `<svg viewBox="0 0 1 1"><text>A &amp; B</text></svg>`, Caption: "Goodput [per s]"}},
		}},
	}}
}

func render(t *testing.T) (markdown, page string) {
	t.Helper()
	var m, h strings.Builder
	if err := ReportMarkdown(&m, sample()); err != nil {
		t.Fatal(err)
	}
	if err := ReportHTML(&h, sample()); err != nil {
		t.Fatal(err)
	}
	return m.String(), h.String()
}

func TestMarkdownTablesAreAlignedInTheSource(t *testing.T) {
	markdown, _ := render(t)
	var widths []int
	for _, line := range strings.Split(markdown, "\n") {
		if strings.HasPrefix(line, "|") {
			widths = append(widths, utf8.RuneCountInString(line))
		}
	}
	if len(widths) != 4 {
		t.Fatalf("%d lines of table in\n%s", len(widths), markdown)
	}
	for _, w := range widths {
		if w != widths[0] {
			t.Errorf("widths differ: %v\n%s", widths, markdown)
		}
	}
}

func TestMarkdownKeepsTextFromBecomingMarkup(t *testing.T) {
	markdown, _ := render(t)
	for _, want := range []string{
		"# Does &lt;reuseport> help?", `**access_log \| off**`, `\*really\*`, "~~77,780~~ ✗", "`` a\\|b `c` ``", "````yaml\na: \"```\"\n````",
		`![Goodput \[per s\]](charts/goodput.png)`, "- two lines\n", "### wrk_10", "\n## The table\n",
	} {
		if !strings.Contains(markdown, want) {
			t.Errorf("no %q in\n%s", want, markdown)
		}
	}
}

func TestUnderscoresAreEscapedOnlyWhereTheyWouldEmphasise(t *testing.T) {
	for in, want := range map[string]string{"worker_connections": "worker_connections", "_a_": `\_a\_`, "a _b": `a \_b`} {
		if got := escapeMarkdown(in); got != want {
			t.Errorf("escapeMarkdown(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestHTMLEscapesTextAndKeepsCharts(t *testing.T) {
	_, page := render(t)
	for _, want := range []string{
		"<h1>Does &lt;reuseport&gt; help?</h1>", "<strong>access_log | off</strong>", "<del>77,780</del>", `<span class="bad"> ✗</span>`,
		`<td class="number">32,620`, `<svg viewBox="0 0 1 1"><text>A &amp; B</text></svg>`, `<a href="#table">The table</a>`, `<section id="table">`,
		"<code>a|b `c`</code>", "campaign_1 &amp; more", "prefers-color-scheme: dark",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q in\n%s", want, page)
		}
	}
}

func TestHTMLNeedsNothingFromOutside(t *testing.T) {
	_, page := render(t)
	for _, bad := range []string{"<script", "<link", "<img", "src=", "url(", "@import", `href="http`} {
		if strings.Contains(page, bad) {
			t.Errorf("the page contains %q", bad)
		}
	}
}

func TestReportsHaveNothingThatSteersATerminal(t *testing.T) {
	const evil = "\x1b]0;title\a\u009b2J\r\u202e"
	r := sample()
	r.Title += evil
	r.Sections = append(r.Sections, Section{ID: evil, Title: evil, Blocks: []Block{
		{Paragraph: Text{{evil, Mono}}}, {Code: &Code{Text: evil}}, {Table: &Table{Head: []string{evil}, Rows: [][]Text{{{{evil, Strong}}}}}},
	}})
	var markdown, page strings.Builder
	if err := errors.Join(ReportMarkdown(&markdown, r), ReportHTML(&page, r)); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"Markdown": markdown.String(), "HTML": page.String()} {
		if i := strings.IndexFunc(text, lab.Steers); i >= 0 || !strings.Contains(text, "title") {
			t.Errorf("%s has %q", name, text[max(0, i):min(len(text), i+20)])
		}
	}
}
