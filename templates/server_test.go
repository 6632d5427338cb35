package templates

import (
	"strings"
	"testing"
)

func TestNginxConfHasOneSiteAndTheStatusListener(t *testing.T) {
	for _, site := range []string{"empty-gif", "hello", "echo", "sleep", "file"} {
		conf, err := NginxConf(Nginx{Listen: []string{"8081"}, Status: "127.0.0.1:8082", Site: site, Sleep: "0.5"})
		if err != nil {
			t.Fatal(err)
		}
		for text, times := range map[string]int{"location": 2, "listen 8081;": 1, "listen 127.0.0.1:8082;": 1, "stub_status on;": 1, "/hold": 0, "{{": 0, "<no value>": 0} {
			if got := strings.Count(conf, text); got != times {
				t.Errorf("%s: %q occurs %d times, want %d:\n%s", site, text, got, times, conf)
			}
		}
	}
	conf, err := NginxConf(Nginx{Listen: []string{"8081"}, Status: "8082", Site: "hello", Hold: true})
	if err != nil || strings.Count(conf, "location") != 3 || strings.Index(conf, "location = /hello") > strings.Index(conf, "location = /hold") {
		t.Errorf("the held location does not follow the site's: %v\n%s", err, conf)
	}
}
