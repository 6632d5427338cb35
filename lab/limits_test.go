package lab_test

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"ngxlab/lab"
)

const limits = `Limit                     Soft Limit           Hard Limit           Units     
Max cpu time              unlimited            unlimited            seconds   
Max processes             15000                unlimited            processes 
Max open files            1024                 1048576              files     
Max nice priority         0                    0                    
`

func TestLimitsOfAProcessAreReadByTheirNames(t *testing.T) {
	all, err := lab.ParseLimits([]byte(limits))
	want := map[string]lab.Rlimit{"Max cpu time": {Soft: -1, Hard: -1}, "Max processes": {Soft: 15000, Hard: -1},
		"Max open files": {Soft: 1024, Hard: 1048576}, "Max nice priority": {}}
	for name, limit := range want {
		if all[name] != limit {
			t.Errorf("%s: %+v, want %+v", name, all[name], limit)
		}
	}
	if err != nil || len(all) != len(want) {
		t.Errorf("%d limits, %v", len(all), err)
	}
}

func TestLimitsOfThisProcessAreThoseItHas(t *testing.T) {
	text, err := os.ReadFile("/proc/self/limits")
	if err != nil {
		t.Fatal(err)
	}
	all, err := lab.ParseLimits(text)
	var has unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_CORE, &has); err != nil {
		t.Fatal(err)
	}
	soft := int64(has.Cur)
	if got := all["Max core file size"]; err != nil || got.Soft != soft || len(all) < 10 {
		t.Errorf("core files %+v, want %d; %d limits, %v", got, soft, len(all), err)
	}
}

func TestLimitsThatCannotBeReadAreAnError(t *testing.T) {
	for _, bad := range []string{"Max open files 1024\n", "Max open files 1024 x files\n", "1024 2048 files\n", "Max open files 1024 99999999999999999999 files\n"} {
		if all, err := lab.ParseLimits([]byte(bad)); err == nil {
			t.Errorf("%q reads %+v", bad, all)
		}
	}
}
