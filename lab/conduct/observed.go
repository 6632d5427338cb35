package conduct

import "ngxlab/lab"

func (c *campaign) observed(run lab.Run, p lab.LoadPoint, f fresh, seen *shot) lab.Run {
	run.Validity = lab.Clean
	if run.Problem != "" {
		run.Validity = lab.Invalid
	}
	return run
}
