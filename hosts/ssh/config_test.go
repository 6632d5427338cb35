package ssh_test

import (
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"ngxlab/hosts/ssh"
	"ngxlab/internal/testlab"
)

// sample is a configuration with what people write. %s is an included file.
const sample = `
# comment
User = someone
Host bastion gate
	HostName %h.example.com   # where it is
	Port=2222
Host web? !web9
    IdentityFile ~/.ssh/one
    IdentityFile "%d/.ssh/two words"
    ProxyJump me@gate:2022,bastion
Include INCLUDED
Host WEB*
    User shouted
Host web*
    User web
    ConnectTimeout 7
    IdentitiesOnly yes
    HostKeyAlias the-web
Host	tabbed	"quoted"
	User	tab
Match all
    Port 2200
    IdentityFile /last
Host *
    User nobody
    StrictHostKeyChecking no
Host last
    HostName no-end-of-line`

const included = `Host web1
  HostName 10.0.0.1
  ProxyJump none
  UserKnownHostsFile /known/one /known/two
Host web2
  Port 99`

// criteria are Match blocks, to be read for several hosts.
const criteria = `
Match host web1
    User by-host
Match host "web*,!web2" user by-host
    Port 2201
Host web3
    HostName db.%h
Match host DB.* # the name after HostName, and the pattern in lower case
    User by-hostname
Match host web3
    Port 1
Match originalhost=web3
    IdentityFile /by/original
Match !originalhost web*,other
    IdentityFile /not/web
Match user by-hostname originalhost web3 !host web3
    ProxyJump jump
Match localuser LOCAL host *
    IdentityFile /by/local
Match !localuser LOCAL
    IdentityFile /not/local
Match user LOCAL
    IdentityFile /by/default/user
Match exec "touch /nonexistent/none" host nobody
    Port 3
Match all
    IdentityFile /by/all
    HostKeyAlias alias
Match Host WEB1,web2 User by-*
    IdentityFile "/by/two words"
`

func TestMatchBlocksAreJudgedAsByOpenSSH(t *testing.T) {
	testlab.Require(t, "ssh")
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	path := written(t, "config", strings.ReplaceAll(criteria, "LOCAL", me.Username))
	for _, alias := range []string{"web1", "web2", "web3", "other", "db.web3", "x"} {
		compare(t, path, alias, "")
		compare(t, path, alias, "by-host")
	}
}

// TestConfigurationIsReadAsOpenSSHReadsIt compares with what ssh -G says.
func TestConfigurationIsReadAsOpenSSHReadsIt(t *testing.T) {
	testlab.Require(t, "ssh")
	path := written(t, "config", strings.ReplaceAll(sample, "INCLUDED", written(t, "included*", included)))
	for _, alias := range []string{"bastion", "gate", "web", "web1", "web2", "web9", "web10", "tabbed", "quoted", "last", "other", "webxy"} {
		got := compare(t, path, alias, "")
		if alias == "web1" && (!slices.Equal(got.Aliases, []string{"the-web:22"}) || got.Timeout != "7s" ||
			!slices.Equal(got.Known[:2], []string{"/known/one", "/known/two"})) {
			t.Errorf("web1 is %+v", got)
		}
	}
}

// compare holds a configuration, for a host and a user ("" = none named), against what ssh -G says.
func compare(t *testing.T, path, alias, login string) ssh.Resolved {
	t.Helper()
	args := []string{"-G", "-F", path, alias}
	if login != "" {
		args = append(args, "-l", login)
	}
	said := map[string][]string{}
	for line := range strings.Lines(tool(t, "ssh", args...)) {
		keyword, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		said[keyword] = append(said[keyword], value)
	}
	got, err := ssh.Resolve(ssh.Destination{Address: alias, User: login}, ssh.Options{Config: []string{path}})
	if err != nil {
		t.Fatal(err)
	}
	home, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	for _, key := range said["identityfile"] {
		keys = append(keys, strings.NewReplacer("~", home, "%d", home).Replace(key))
	}
	for what, pair := range map[string][2][]string{
		"hostname":       {{got.Address}, said["hostname"]},
		"port":           {{strconv.Itoa(got.Port)}, said["port"]},
		"user":           {{got.User}, said["user"]},
		"identityfile":   {got.Keys, keys},
		"identitiesonly": {{map[bool]string{true: "yes", false: "no"}[got.Only]}, said["identitiesonly"]},
		"proxyjump":      {{strings.Join(got.Jumps, ",")}, {strings.Join(said["proxyjump"], ",")}},
	} {
		if !slices.Equal(pair[0], pair[1]) {
			t.Errorf("%s of %s: %q, ssh says %q", what, alias, pair[0], pair[1])
		}
	}
	return got
}

func TestDestinationWinsOverTheConfiguration(t *testing.T) {
	path := written(t, "config", "Host web\n HostName 10.0.0.1\n Port 1\n User a\n IdentityFile /a\n ProxyJump a\n ProxyCommand nc\nMatch user x\n User b\n")
	d := ssh.Destination{Address: "web", Port: 2, User: "z", Key: "~/z", Jump: "z"}
	got, err := ssh.Resolve(d, ssh.Options{Config: []string{path}})
	if err != nil {
		t.Fatal(err)
	}
	home, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	if got.Address != "10.0.0.1" || got.Port != 2 || got.User != "z" || !slices.Equal(got.Keys, []string{home + "/z"}) ||
		!slices.Equal(got.Jumps, []string{"z"}) || !got.Only {
		t.Errorf("it is %+v", got)
	}
	d.Jump = "none"
	if got, err := ssh.Resolve(d, ssh.Options{Config: []string{path}}); err != nil || got.Jumps != nil {
		t.Errorf("without jumps it is %+v, %v", got, err)
	}
}

func TestFirstFileWinsAndDefaultsAreOpenSSHs(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("SSH_AUTH_SOCK", "/agent")
	if err := os.Mkdir(filepath.Join(home, ".ssh"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, ".ssh", "config"), []byte("User first\nInclude more/*\nInclude none/*\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := ssh.Resolve(ssh.Destination{Address: "Web"}, ssh.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got.User != "first" || got.Port != 22 || got.Address != "Web" || got.Timeout != "10s" || got.Agent != "/agent" ||
		!slices.Equal(got.Aliases, []string{"web:22"}) || got.Known[0] != home+"/.ssh/known_hosts" ||
		!slices.Contains(got.Known, "/etc/ssh/ssh_known_hosts") || got.Keys[0] != home+"/.ssh/id_ed25519" {
		t.Errorf("it is %+v", got)
	}
	two := ssh.Options{Config: []string{written(t, "one", "User one\n"), written(t, "two", "User two\nPort 2\n")}}
	if got, err := ssh.Resolve(ssh.Destination{Address: "web"}, two); err != nil || got.User != "one" || got.Port != 2 {
		t.Errorf("of two files it is %+v, %v", got, err)
	}
}

func TestMatchBlocksAreRefusedOnlyWhereTheyMatter(t *testing.T) {
	for text, wrong := range map[string]bool{
		"Match user me\n ForwardAgent yes\n":                            false,
		"Match final all\n Include /etc/ssh/none/*\n Ciphers aes\n":     false,
		"User a\nMatch host web exec \"true\"\n User b\n":               false, // decided before
		"Match host web user me\n\tHostName elsewhere\n":                false,
		"Match exec \"true\" host db\n User b\n":                        false, // whatever it says
		"Match tagged x host web\n User b\n":                            true,
		"Match host web localnetwork 10.0.0.0/8\n Port 3\n":             true,
		"Match canonical\n UserKnownHostsFile /x\n":                     true,
		"Match host\n HostKeyAlias x\n":                                 true, // nothing follows
		"Match exec \"true\"\n Include " + written(t, "i", "Port 1\n"):  true,
		"Match all\n User x\n":                                          false,
		"Host other\n User b\nMatch originalhost other\n ProxyJump x\n": false,
	} {
		path := written(t, "config", text)
		_, err := ssh.Resolve(ssh.Destination{Address: "web"}, ssh.Options{Config: []string{path}})
		if wrong {
			says(t, err, path+":", "Match block", "not understood")
		} else if err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestWrongConfigurationIsToldWithItsFile(t *testing.T) {
	loop := written(t, "loop", "")
	if err := os.WriteFile(loop, []byte("Include "+loop+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"Port http\n":                "port",
		"ProxyCommand nc %h %p\n":    "ProxyCommand",
		"ConnectTimeout soon\n":      "ConnectTimeout",
		"IdentityFile /keys/%C\n":    "%C",
		"ProxyJump a:b\n":            "ProxyJump",
		"= x\n":                      "line 1",
		"Include " + loop + "\n":     loop,
		"User ${NONE}\nHostName %q ": "HostName",
	} {
		_, err := ssh.Resolve(ssh.Destination{Address: "web"}, ssh.Options{Config: []string{written(t, "config", text)}})
		says(t, err, want)
	}
	_, err := ssh.Resolve(ssh.Destination{Address: "web"}, ssh.Options{Config: []string{"/none/config"}})
	says(t, err, "/none/config")
}

func FuzzConfigurationNeverHangs(f *testing.F) {
	for _, text := range []string{sample, included, "=", "Host", "Match", "Include", "Host *\n\x00=\r", "User \"a", "\"Host\" x"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Contains(strings.ToLower(text), "include") {
			return // other files
		}
		_, _ = ssh.Resolve(ssh.Destination{Address: "web"}, ssh.Options{Config: []string{written(t, "config", text)}})
	})
}
