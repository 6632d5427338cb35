package nginxconf

import (
	"slices"
	"strings"
)

// Set, SetParameter, Remove, Value and Parameter are the methods of Files on a configuration of one file.
func Set(conf []byte, in Path, name, value string) ([]byte, error) {
	return alone(conf, func(t tree) ([]edit, error) { return t.set(in, name, value) })
}

func SetParameter(conf []byte, in Path, name, parameter, value string) ([]byte, error) {
	return alone(conf, func(t tree) ([]edit, error) { return t.setParameter(in, name, parameter, value) })
}

func Remove(conf []byte, in Path, name string) ([]byte, error) {
	return alone(conf, func(t tree) ([]edit, error) { return t.remove(in, name) })
}

// Quote writes an argument so that nginx reads it as it is: with quotes only when it needs them.
func Quote(arg string) string {
	plain := "x " + arg + ";"
	list, err := Parse([]byte(plain))
	if err == nil && len(list) == 1 && list[0].End == len(plain) && slices.Equal(list[0].Args, []string{arg}) {
		return arg
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(arg) + `"`
}

// alone edits a configuration of one file; on an error it is returned as it was.
func alone(conf []byte, change func(tree) ([]edit, error)) ([]byte, error) {
	t, err := single(conf)
	if err != nil {
		return conf, err
	}
	edits, err := change(t)
	if err != nil {
		return conf, err
	}
	return apply(conf, edits), nil
}

func Value(conf []byte, in Path, name string) (value string, found bool, err error) {
	t, err := single(conf)
	if err != nil {
		return "", false, err
	}
	return t.value(in, name)
}

func Parameter(conf []byte, in Path, name, parameter string) (value string, found bool, err error) {
	t, err := single(conf)
	if err != nil {
		return "", false, err
	}
	return t.parameter(in, name, parameter)
}

// single is the tree of a configuration of one file.
func single(conf []byte) (tree, error) {
	list, err := Parse(conf)
	return tree{text: map[string][]byte{"": conf}, list: list}, err
}
