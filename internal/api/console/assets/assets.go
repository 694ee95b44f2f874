// Package assets has the style, the scripts and the icons of the web console, as they are served.
// VENDORED.md names what others made.
package assets

import "embed"

// Files are all of them.
//
//go:embed *.css *.js *.svg
var Files embed.FS
