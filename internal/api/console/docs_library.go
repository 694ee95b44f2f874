package console

import (
	"bytes"
	"fmt"
	"html/template"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/eventyard/eventyard/docs"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// docsPath is where the docs are.
const docsPath = base + "docs"

// library is the documentation of this version, rendered.
type library struct {
	folders  []folder
	articles map[string]*article // by path: guides/access
	headings []heading
}

// folder is one of it.
type folder struct {
	Title    string
	Articles []*article
}

// article is one page. Its text is ours and safe; the marks of placeholders are still in it.
type article struct {
	Path, Title, Text string
}

// Link is where it is.
func (a *article) Link() string { return docsPath + "/" + a.Path }

// heading is a place in the docs that can be looked for.
type heading struct{ Title, Of, Link string }

// folderTitles are the folders in the order of how many need them: first the four kinds of pages, to learn from, to
// do something by, to understand, and to look something up.
var folderTitles = []struct{ path, title string }{
	{"tutorials", "Tutorials"}, {"guides", "Guides"}, {"concepts", "Concepts"}, {"reference", "Reference"},
	{".", "Overview"}, {"internals", "Internals"}, {"internals/format", "Formats"}, {"internals/decisions", "Decisions"},
}

// theLibrary is made when somebody reads first.
var theLibrary = sync.OnceValue(func() *library {
	l, err := newLibrary(docs.Files)
	if err != nil {
		panic("console: the docs in the program: " + err.Error())
	}
	return l
})

func newLibrary(files fs.FS) (*library, error) {
	l := &library{articles: map[string]*article{}}
	for _, s := range folderTitles {
		names, err := fs.Glob(files, path.Join(s.path, "*.*"))
		if err != nil {
			return nil, err
		}
		on := folder{Title: s.title}
		for _, name := range names {
			a, err := l.read(files, name)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			if a != nil {
				on.Articles = append(on.Articles, a)
			}
		}
		slices.SortStableFunc(on.Articles, func(a, b *article) int { return strings.Compare(order(a), order(b)) })
		l.folders = append(l.folders, on)
	}
	return l, nil
}

// firsts are what one reads first of each folder.
var firsts = map[string]bool{"tutorials/orders": true, "guides/first": true, "concepts/promises": true, "index": true}

func order(a *article) string {
	if firsts[a.Path] {
		return ""
	}
	return strings.ToLower(a.Title)
}

// read takes a file in, unless it is no page.
func (l *library) read(files fs.FS, name string) (*article, error) {
	source, err := fs.ReadFile(files, name)
	if err != nil {
		return nil, err
	}
	a := &article{Path: strings.TrimSuffix(name, ".md"), Title: path.Base(name)}
	switch path.Ext(name) {
	case ".md":
		err = l.render(a, files, name, source)
	case ".yaml":
		a.Text = codeHTML(string(source))
	default:
		return nil, nil
	}
	l.articles[a.Path] = a
	l.headings = append(l.headings, heading{a.Title, "", a.Link()})
	return a, err
}

// markdown is how pages are written: with tables, and headings that can be linked to. HTML in them is
// left out.
var markdown = goldmark.New(
	goldmark.WithExtensions(extension.Table, extension.Strikethrough),
	goldmark.WithParserOptions(parser.WithAutoHeadingID()),
	goldmark.WithRendererOptions(renderer.WithNodeRenderers(util.Prioritized(codeBlocks{}, 100))),
)

// fragment keeps ids of headings apart from those of the console's own elements.
const fragment = "h-"

// render makes a page of Markdown. Its first heading is the page's title.
func (l *library) render(a *article, files fs.FS, name string, source []byte) error {
	doc := markdown.Parser().Parse(text.NewReader(source))
	var title ast.Node
	var images []*ast.Image
	err := ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Heading:
			id := ""
			if given, ok := n.AttributeString("id"); ok {
				id = fragment + string(given.([]byte))
				n.SetAttributeString("id", []byte(id))
			}
			words := string(headingText(n, source))
			if n.Level == 1 && title == nil {
				title, a.Title = n, words
				return ast.WalkContinue, nil
			}
			l.headings = append(l.headings, heading{words, a.Title, a.Link() + "#" + id})
		case *ast.Link:
			n.Destination = []byte(linkFrom(name, string(n.Destination)))
		case *ast.Image:
			images = append(images, n)
		}
		return ast.WalkContinue, nil
	})
	if err != nil {
		return err
	}
	if title != nil {
		doc.RemoveChild(doc, title)
	}
	for _, n := range images {
		if err := drawPicture(n, files, name); err != nil {
			return err
		}
	}
	var out bytes.Buffer
	if err := markdown.Renderer().Render(&out, source, doc); err != nil {
		return err
	}
	a.Text = strings.NewReplacer("<!-- raw HTML omitted -->", "", "<table>", `<div class="scroll" tabindex="0"><table class="table tight">`, "</table>", "</table></div>").Replace(out.String())
	return nil
}

// drawnFor is what a picture says of colours where it is shown by itself. In the console it has those of the page.
var drawnFor = regexp.MustCompile(`(?s)<style>.*?</style>\n?`)

// drawPicture puts a drawing of the docs into the page itself, where it has the colours that the reader has
// chosen, in place of the paragraph that has the image.
func drawPicture(n *ast.Image, files fs.FS, name string) error {
	drawing, err := fs.ReadFile(files, path.Join(path.Dir(name), string(n.Destination)))
	if err != nil {
		return err
	}
	paragraph := n.Parent()
	if path.Ext(string(n.Destination)) != ".svg" || paragraph.ChildCount() != 1 {
		return fmt.Errorf("%s: an image is a drawing (.svg) in a paragraph of its own", n.Destination)
	}
	whole := ast.NewString([]byte(`<div class="scroll" tabindex="0">` + drawnFor.ReplaceAllString(string(drawing), "") + "</div>\n"))
	whole.SetCode(true) // written as it is
	block := ast.NewTextBlock()
	block.AppendChild(block, whole)
	paragraph.Parent().ReplaceChild(paragraph.Parent(), paragraph, block)
	return nil
}

// headingText is a heading's words without what is around them.
func headingText(n ast.Node, source []byte) (words []byte) {
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		if t, ok := c.(*ast.Text); ok {
			words = append(words, t.Segment.Value(source)...)
		} else {
			words = append(words, headingText(c, source)...)
		}
	}
	return words
}

// linkFrom is where a link of a page leads in the console. Those to elsewhere stay.
func linkFrom(name, to string) string {
	if strings.Contains(to, "://") {
		return to
	}
	file, at, _ := strings.Cut(to, "#")
	link := ""
	if file != "" {
		link = docsPath + "/" + strings.TrimSuffix(path.Join(path.Dir(name), file), ".md")
	}
	if at != "" {
		link += "#" + fragment + at
	}
	return link
}

// codeBlocks writes code so that it can be scrolled by keys, and copied.
type codeBlocks struct{}

func (codeBlocks) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
	write := func(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
		if entering {
			var code strings.Builder
			for i := range n.Lines().Len() {
				line := n.Lines().At(i)
				code.Write(line.Value(source))
			}
			_, _ = w.WriteString(codeHTML(code.String())) // its Flush says what went wrong
			if isRun(n, source) {
				_, _ = w.WriteString(runMark + strings.TrimSpace(code.String()) + runMark[:1])
			}
		}
		return ast.WalkContinue, nil
	}
	r.Register(ast.KindFencedCodeBlock, write)
	r.Register(ast.KindCodeBlock, write)
}

// Placeholders are what code says for names of the reader's yard; marked, so that only those of code are
// filled in.
const (
	hubMark    = "\x01hub\x01"
	topicMark  = "\x01topic\x01"
	stringMark = "\x01string\x01"
	policyMark = "\x01policy\x01"
	serverMark = "\x01server\x01"
)

var placeholders = strings.NewReplacer("{hub}", hubMark, "{topic}", topicMark, "{connectionString}", stringMark,
	"{policy}", policyMark, "{server}", serverMark)

func codeHTML(code string) string {
	escaped := placeholders.Replace(template.HTMLEscapeString(strings.TrimSuffix(code, "\n")))
	return `<div class="codebox"><pre class="code" tabindex="0">` + escaped + `</pre><button class="btn slim" type="button" data-copy="` + escaped + `" hidden>Copy</button></div>` + "\n"
}
