package report

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"ngxlab/lab"
)

// versionsStudy is a study of versions: the same two load points, each state another build.
func versionsStudy(t *testing.T, builds ...lab.Build) lab.Results {
	t.Helper()
	r := lab.Results{Campaign: lab.Campaign{ID: "versions", Name: "versions", Began: began, Status: lab.StatusDone, Parts: 1}, Plan: fakePlan(t), Builds: builds}
	e := &r.Plan.Experiment
	e.Steps, e.Claims, e.Ladder.Kind, e.Builds = nil, nil, lab.Isolated, map[string]lab.Recipe{}
	r.Plan.Capacity, r.Plan.Servings, r.Plan.States = nil, nil, nil
	for i, b := range builds {
		state := lab.State{Name: b.Recipe}
		if i > 0 {
			state.Step, state.Over = b.Recipe, builds[0].Recipe
		}
		recipe := lab.Recipe{Name: b.Recipe, Flavor: lab.FlavorNginx, Modules: []string{"stub_status"}}
		r.Plan.States, r.Plan.Builds = append(r.Plan.States, state), append(r.Plan.Builds, recipe)
		e.Builds[b.Recipe] = recipe
		r.Plan.Servings = append(r.Plan.Servings, lab.Serving{Target: "here", State: b.Recipe, Recipe: b.Recipe, Port: 8081, StatusPort: 8082})
		for round := 1; round <= 6; round++ {
			for _, l := range r.Plan.Loads {
				r.Runs = append(r.Runs, lab.Run{Cell: lab.CellID{Target: "here", State: b.Recipe, Load: l.Name}, Round: round, Attempt: 1, Part: 1, Validity: lab.Clean,
					Server: lab.Server{Build: b.ID, Workers: []int{2}}, Figures: lab.Figures{lab.Goodput: 1000 + float64(i*100+round), lab.CPUPerRequest: 3e-5}})
			}
		}
	}
	return r
}

var (
	old122 = lab.Build{ID: "a1", Recipe: "nginx 1.22", Version: "1.22.1", Compiler: "gcc 12.2.0", Distribution: "debian 12", Architecture: "amd64",
		Configured: "nginx version: nginx/1.22.1\nbuilt with OpenSSL 3.0.15\nconfigure arguments: --with-http_ssl_module --with-cc-opt='-O2 -g'",
		Libraries:  []lab.Library{{Name: "libc.so.6", Version: "2.36-9"}, {Name: "libpcre.so.3", Version: "8.39"}, {Name: "libssl.so.3", Version: "3.0.15-1"}}}
	new126 = func() lab.Build {
		b := old122
		b.ID, b.Recipe, b.Version, b.Configured = "b2", "nginx 1.26", "1.26.3", strings.Replace(b.Configured, "1.22.1", "1.26.3", 1)
		return b
	}()
)

func TestVersionsMadeAlikeAreComparedWithoutAWarning(t *testing.T) {
	if text := markdown(t, versionsStudy(t, old122, new126)); strings.Contains(text, "more than their version") || strings.Contains(text, "the builds differ") {
		t.Error("builds that differ in their version alone are warned of")
	}
}

func TestVersionsMadeDifferentlyAreNotTakenForADifferenceOfVersion(t *testing.T) {
	b := new126
	b.Compiler = "clang 14.0.6"
	b.Libraries = []lab.Library{{Name: "libc.so.6", Version: "2.36-9"}, {Name: "libpcre2-8.so.0", Version: "10.42"}, {Name: "libssl.so.3", Version: "3.0.16-1"}}
	b.Configured = strings.Replace(b.Configured, "'-O2 -g'", "-O3", 1)
	wants(t, markdown(t, versionsStudy(t, old122, b)),
		"⚠ “nginx 1.26” and “nginx 1.22” differ in more than their version (1.26.3 and 1.22.1): compiler: clang 14.0.6 and gcc 12.2.0",
		"libssl: libssl.so.3 3.0.16-1 and libssl.so.3 3.0.15-1", "libpcre: not linked and libpcre.so.3 8.39", "libpcre2-8: libpcre2-8.so.0 10.42 and not linked",
		"flags: --with-cc-opt=-O3 and --with-cc-opt='-O2 -g'", "In 1 comparison of versions the builds differ in more than their version")
}

func TestOpenSSLThatIsLinkedInIsReadFromTheServersOwnWords(t *testing.T) {
	a, b := old122, new126
	a.Libraries, b.Libraries = nil, nil
	b.Configured = strings.Replace(b.Configured, "OpenSSL 3.0.15", "OpenSSL 1.1.1w", 1)
	if got := differences(b, a); !slices.Equal(got, []string{"OpenSSL: OpenSSL 1.1.1w and OpenSSL 3.0.15"}) {
		t.Errorf("%q", got)
	}
}

func TestBuildsOfOneVersionAreComparedForWhatTheyAre(t *testing.T) {
	b := new126
	b.Version, b.Compiler = old122.Version, "clang 14.0.6"
	if text := markdown(t, versionsStudy(t, old122, b)); strings.Contains(text, "more than their version") {
		t.Error("a study of compilers is warned of its compilers")
	}
}

func TestEveryBuildHasARowWithWhatItWasMadeOf(t *testing.T) {
	compiled, packaged, installed := old122, new126, old122
	compiled.MadeBy, compiled.TookS, compiled.Sources = "nobody", 41.3, map[string]string{"nginx_1.22.1.orig.tar.gz": "9ebb333a9e802f5d"}
	compiled.Notes, compiled.Modules, compiled.Dynamic = []string{"remedy: crypt.h has no crypt_data.current_salt"}, []string{"ngx_core_module"}, []string{"modules/ngx_http_echo_module.so"}
	packaged.From = "web2"
	installed.ID, installed.Recipe = "c3", "here"
	r := versionsStudy(t, compiled, packaged, installed)
	r.Plan.Builds[1].Package, r.Plan.Builds[2].Installed = []string{"nginx", "libnginx-mod-http-echo"}, "/usr/sbin/nginx"
	wants(t, markdown(t, r), "nginx_1.22.1.orig.tar.gz `9ebb333a9e80`", "nobody, in 41.3 s", "packages `nginx`, `libnginx-mod-http-echo`", "the distribution; unpacked, not installed",
		"installed: `/usr/sbin/nginx`", "the host has it", "the machine that ngxlab ran on, copied to the target", "remedy: crypt.h", "1 module compiled in: `ngx_core_module`",
		"modules loaded: `modules/ngx_http_echo_module.so`", "libraries: libc.so.6 2.36-9, libpcre.so.3 8.39")
}

func TestOneRecipeThatGaveTwoBuildsIsFlagged(t *testing.T) {
	r := versionsStudy(t, old122, new126)
	b := old122
	b.ID, b.Compiler = "zz", "gcc 14.2.0"
	r.Builds = append(r.Builds, b)
	run := r.Runs[0]
	run.Cell.Target, run.Server.Build = "web2", "zz"
	r.Runs = append(r.Runs, run)
	wants(t, markdown(t, r), "⚠ nginx 1.22 is two builds, a1 on here and zz on web2: compiler: gcc 12.2.0 and gcc 14.2.0.")
}

func TestServersAreShownAsTheyWereReadBack(t *testing.T) {
	r := versionsStudy(t, old122, new126)
	r.Plan.Experiment.Server.Site = "proxy"
	first := &r.Plan.Servings[0]
	first.TLS, first.Upstream = &lab.TLS{Key: "ecdsa"}, &lab.Serving{Target: "back", Port: 8090, Recipe: "nginx 1.26"}
	r.Plan.Servings[1].Command = &lab.ServerCommand{Start: []string{"{binary}", "-p", "{port}"}}
	r.Plan.Servings[1].Count = &lab.Count{Log: "logs/access.log", Pattern: "GET /hello"}
	for i := range r.Runs {
		if r.Runs[i].Cell.State == old122.Recipe {
			r.Runs[i].Server = lab.Server{Build: "a1", User: "www-data", QUIC: true, EffectiveSHA: "0123456789abcdef", Workers: []int{3},
				TLS: &lab.TLSState{Version: "TLS 1.3", Cipher: "TLS_AES_128_GCM_SHA256", Protocol: "h2", Key: "ecdsa"}}
		}
	}
	wants(t, markdown(t, r), "### Servers", "TLS 1.3, TLS_AES_128_GCM_SHA256, ecdsa, h2, QUIC, too", "www-data", "back, port 8090, nginx 1.26.3", "`0123456789ab`",
		"by `{binary} -p {port}`", "lines of logs/access.log with GET /hello", "stub_status", "site proxy")
}

// delayStudy is a study of one state whose requests wait a second each, with the given goodput at 100 connections.
func delayStudy(t *testing.T, goodput float64) lab.Results {
	t.Helper()
	r := versionsStudy(t, old122)
	r.Plan.Servings[0].DelayS = 1
	for i := range r.Runs {
		load, _ := r.Plan.Load(r.Runs[i].Cell.Load)
		r.Runs[i].Figures[lab.Goodput] = goodput * float64(load.Connections) / 100 * (1 + 0.001*float64(r.Runs[i].Round))
	}
	return r
}

func TestRequestsThatWaitAreShownBesideTheirBound(t *testing.T) {
	text := markdown(t, delayStudy(t, 96))
	wants(t, text, "## Requests that wait", "connections ÷ delay")
	row := rowOf(t, text, "Requests that wait", "nginx 1.22")
	if got := strings.Join(row, "|"); !strings.Contains(got, "|10|all|1.00 s|10.00|9.6") || !strings.Contains(got, "96.3%") {
		t.Errorf("row: %s", got)
	}
	if strings.Contains(text, "impossible") {
		t.Error("a possible figure is called impossible")
	}
}

func TestThreadsThatBlockBoundWhatConnectionsAllow(t *testing.T) {
	r := delayStudy(t, 8)
	r.Plan.Servings[0].AtOnce = 9
	row := rowOf(t, markdown(t, r), "Requests that wait", "nginx 1.22")
	if got := strings.Join(row, "|"); !strings.Contains(got, "|10|9|1.00 s|9.000|") {
		t.Errorf("row: %s", got)
	}
}

func TestFigureAboveItsBoundIsCalledImpossible(t *testing.T) {
	r := delayStudy(t, 120)
	wants(t, markdown(t, r), "⚠ impossible", "“nginx 1.22” at wrk 100 keep-alive: 120.4 per second cannot be with a delay of 1.00 s, whose bound is 100.0. The figure or the delay is wrong; neither is to be used.")
	r.Runs = slices.DeleteFunc(r.Runs, func(run lab.Run) bool { return run.Round > 2 }) // too few for an interval
	wants(t, markdown(t, r), "⚠ impossible")
}

func TestDelayMayBeShorterByATickOfItsTimer(t *testing.T) {
	r := delayStudy(t, 10500) // of 10,000 per second for 10 ms, 11,111 for 9 ms
	r.Plan.Servings[0].DelayS = 0.01
	if text := markdown(t, r); strings.Contains(text, "impossible") {
		t.Error("a figure within the resolution of timers is called impossible")
	}
}

func TestStudyWithoutDelaysSaysNothingOfThem(t *testing.T) {
	if text := markdown(t, fakeResults(t)); strings.Contains(text, "Requests that wait") {
		t.Error("a section about nothing")
	}
}

func TestChartOfGoodputShowsTheBound(t *testing.T) {
	files, err := Files(delayStudy(t, 96), Options{})
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(files, func(f File) bool { return f.Name == HTMLName })
	if !bytes.Contains(files[i].Data, []byte("dotted: the bound")) {
		t.Error("the chart has no bound")
	}
}
