package standin

import "io/fs"

// only is a file system of which nothing but one folder is seen at the top.
type only struct {
	fs.FS
	name string
}

// ReadDir lists the folder alone at the top, and what is there below.
func (o only) ReadDir(name string) ([]fs.DirEntry, error) {
	list, err := fs.ReadDir(o.FS, name)
	if name != "." {
		return list, err
	}
	for _, e := range list {
		if e.Name() == o.name {
			return []fs.DirEntry{e}, err
		}
	}
	return nil, err
}
