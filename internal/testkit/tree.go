package testkit

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Tree is all that is in a folder, by path: "folder", "file: CONTENT", "link: TARGET". A path that
// is a link is not followed.
func Tree(t T, dir string) map[string]string {
	t.Helper()
	tree := map[string]string{}
	Must(t, filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		switch {
		case entry.IsDir():
			tree[path] = "folder"
		case entry.Type().IsRegular():
			text, err := os.ReadFile(path)
			tree[path] = "file: " + string(text)
			return err
		default:
			target, err := os.Readlink(path)
			tree[path] = "link: " + target
			return err
		}
		return nil
	}))
	return tree
}

// Holds reports whatever of a tree, as Tree gave it, has changed or gone since. What was added
// does not count.
func Holds(t T, tree map[string]string, dir string) {
	t.Helper()
	now := Tree(t, dir)
	for path, was := range tree {
		if now[path] != was {
			t.Error(fmt.Sprintf("%s was %.60q and is %.60q", path, was, now[path]))
		}
	}
}
