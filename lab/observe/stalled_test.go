package observe

import (
	"testing"

	"ngxlab/lab"
)

// standing stops the count of a scene between two of its samples, which stand half a second apart.
func standing(from, to int) func(int, *lab.Sample) {
	var stood uint64
	return func(i int, s *lab.Sample) {
		if i > from && i <= to {
			stood += 15000
		}
		s.Status.Requests -= stood
	}
}

func TestATimeWithoutAnswersIsAStandstill(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*scene)
		want   string
	}{
		{"quiet", func(*scene) {}, "quiet"},
		{"one second", func(sc *scene) { sc.each = standing(8, 10) }, "warned"},
		{"polls unanswered meanwhile", func(sc *scene) {
			stand := standing(8, 10)
			sc.each = func(i int, s *lab.Sample) {
				if stand(i, s); i == 9 {
					s.Status = nil
				}
			}
		}, "warned"},
		{"a poll that waited as long", func(sc *scene) {
			stand := standing(9, 10) // of half a second, a fifth of which before the standstill
			sc.each = func(i int, s *lab.Sample) {
				if stand(i, s); i > 9 {
					s.Status.Requests += 3000
				}
				if i == 10 {
					s.TookS = 0.4
				}
			}
		}, "warned"},
		{"a watcher that waited", func(sc *scene) {
			sc.each = func(i int, s *lab.Sample) {
				if i == 10 {
					s.TookS = 0.4
				}
			}
		}, "quiet"},
		{"nearly all of it", func(sc *scene) { sc.each = standing(4, 21) }, "warned"},
		{"half as fast for a while", func(sc *scene) {
			var lost uint64
			sc.each = func(i int, s *lab.Sample) {
				if i > 8 && i <= 10 {
					lost += 7500
				}
				s.Status.Requests -= lost
			}
		}, "quiet"},
		{"answers of a second", func(sc *scene) { sc.rate, sc.each = 100, standing(2, 2) }, "not evaluated"},
		{"no readings", func(sc *scene) { sc.each = func(_ int, s *lab.Sample) { s.Status = nil } }, "not evaluated"},
	} {
		sc := quietScene()
		c.change(&sc)
		if f := finding(sc.observe(), "server-stalled"); word(f) != c.want {
			t.Errorf("%s: %s: %s", c.name, word(f), f.Evidence)
		}
	}
}
