package templates

import (
	_ "embed"
	"fmt"
	html "html/template"
	"io"
	"regexp"
	"strings"
	text "text/template"
	"unicode/utf8"

	"ngxlab/lab"
)

//go:embed report.md.tmpl
var reportMarkdown string

//go:embed report.html.tmpl
var reportHTML string

//go:embed report.css
var reportCSS string

// Report is a report as a document: what it says, before it is Markdown or HTML.
type Report struct {
	Title    string
	Sections []Section
	Footer   string
}

// Section is a headed part of a report. ID is its anchor, unique in the report.
type Section struct {
	ID     string
	Title  string
	Blocks []Block
}

// Block is one piece of a section; exactly one field is set.
type Block struct {
	Paragraph Text
	List      []Text
	Heading   string // of a part of the section
	Table     *Table
	Figure    *Figure
	Code      *Code
}

// Table is a table; every row is as long as Head.
type Table struct {
	Head    []string
	Numbers []bool // columns set to the right; as long as Head, or nil
	Rows    [][]Text
}

// Figure is a chart: a file beside the Markdown, and the SVG itself inside the HTML.
type Figure struct {
	File    string
	SVG     string
	Caption string
}

// Code is text kept byte for byte.
type Code struct {
	Language string
	Text     string
}

// Style is how a span is set.
type Style int

// The styles.
const (
	Plain Style = iota
	Strong
	Mono   // a name, code or value as a machine writes it
	Struck // a figure that must not be used
	Quiet  // beside the point, such as an interval
	Good   // verdict words and marks
	Bad
	Doubt
)

// Span is a stretch of text in one style.
type Span struct {
	Text  string
	Style Style
}

// Text is spans without a break between them.
type Text []Span

// ReportMarkdown writes the report as GitHub-flavoured Markdown; its tables are aligned in the source, too.
func ReportMarkdown(w io.Writer, r Report) error {
	functions := text.FuncMap{"text": markdownText, "table": markdownTable, "fence": fence, "escape": escapeMarkdown}
	t, err := text.New("report.md").Funcs(functions).Option("missingkey=error").Parse(reportMarkdown)
	if err != nil {
		return fmt.Errorf("template report.md: %w", err)
	}
	if err := execute(w, t, r); err != nil {
		return fmt.Errorf("template report.md: %w", err)
	}
	return nil
}

// ReportHTML writes the report as one page with everything inside: no script, no request to anywhere.
func ReportHTML(w io.Writer, r Report) error {
	functions := html.FuncMap{
		"svg":     func(s string) html.HTML { return html.HTML(s) }, // drawn by package plots, which escapes every text
		"css":     func() html.CSS { return html.CSS(reportCSS) },
		"class":   func(s Style) string { return styleClass[s] },
		"numeric": func(t *Table, column int) bool { return column < len(t.Numbers) && t.Numbers[column] },
	}
	t, err := html.New("report.html").Funcs(functions).Option("missingkey=error").Parse(reportHTML)
	if err != nil {
		return fmt.Errorf("template report.html: %w", err)
	}
	if err := execute(w, t, r); err != nil {
		return fmt.Errorf("template report.html: %w", err)
	}
	return nil
}

// execute writes a report without what would steer the terminal of who reads its source: hosts have a say in it.
func execute(w io.Writer, t interface{ Execute(io.Writer, any) error }, r Report) error {
	var b strings.Builder
	if err := t.Execute(&b, r); err != nil {
		return err
	}
	_, err := io.WriteString(w, lab.Printable(b.String()))
	return err
}

// styleClass names the CSS class of a style; Plain, Strong, Mono and Struck are elements.
var styleClass = map[Style]string{Quiet: "quiet", Good: "good", Bad: "bad", Doubt: "doubt"}

// markdownText sets spans in Markdown. Colour has no counterpart there: the words carry the meaning.
func markdownText(t Text) string {
	var b strings.Builder
	for _, s := range t {
		if s.Text == "" {
			continue
		}
		switch s.Style {
		case Strong:
			b.WriteString("**" + escapeMarkdown(s.Text) + "**")
		case Mono:
			b.WriteString(monoMarkdown(s.Text))
		case Struck:
			b.WriteString("~~" + escapeMarkdown(s.Text) + "~~")
		default:
			b.WriteString(escapeMarkdown(s.Text))
		}
	}
	return strings.ReplaceAll(b.String(), "\n", " ")
}

// monoMarkdown quotes with one more backtick than the longest run inside; a bar would end a table's cell even there.
func monoMarkdown(s string) string {
	s = strings.ReplaceAll(s, "|", `\|`)
	mark := strings.Repeat("`", longestRun(s, '`')+1)
	if strings.HasPrefix(s, "`") || strings.HasSuffix(s, "`") {
		return mark + " " + s + " " + mark
	}
	return mark + s + mark
}

var markdownSpecial = strings.NewReplacer(
	`\`, `\\`, "`", "\\`", "*", `\*`, "[", `\[`, "]", `\]`, "<", "&lt;", "|", `\|`, "~", `\~`,
)

// outerUnderscore is an underscore that may begin or end emphasis; inside a word it never does.
var outerUnderscore = regexp.MustCompile(`\b_|_\b|^_|_$`)

// escapeMarkdown keeps text from being read as markup.
func escapeMarkdown(s string) string {
	return outerUnderscore.ReplaceAllString(markdownSpecial.Replace(s), `\_`)
}

// fence returns backticks enough to enclose s.
func fence(s string) string { return strings.Repeat("`", max(3, longestRun(s, '`')+1)) }

func longestRun(s string, of rune) int {
	longest, run := 0, 0
	for _, r := range s {
		run++
		if r != of {
			run = 0
		}
		longest = max(longest, run)
	}
	return longest
}

// markdownTable sets a table with its columns aligned in the source.
func markdownTable(t *Table) string {
	cells := [][]string{make([]string, len(t.Head))}
	for i, h := range t.Head {
		cells[0][i] = escapeMarkdown(h)
	}
	for _, row := range t.Rows {
		line := make([]string, len(t.Head))
		for i := range line {
			if i < len(row) {
				line[i] = markdownText(row[i])
			}
		}
		cells = append(cells, line)
	}
	widths := make([]int, len(t.Head))
	for _, row := range cells {
		for i, c := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(c), 3)
		}
	}
	return tableLines(cells, widths, t.Numbers)
}

func tableLines(cells [][]string, widths []int, numbers []bool) string {
	var b strings.Builder
	for r, row := range cells {
		for i, c := range row {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(c))
			if i < len(numbers) && numbers[i] {
				c, pad = pad+c, ""
			}
			b.WriteString("| " + c + pad + " ")
		}
		b.WriteString("|\n")
		if r == 0 {
			rule(&b, widths, numbers)
		}
	}
	return b.String()
}

// rule writes the line below a table's head.
func rule(b *strings.Builder, widths []int, numbers []bool) {
	for i, w := range widths {
		if i < len(numbers) && numbers[i] {
			b.WriteString("| " + strings.Repeat("-", w-1) + ": ")
			continue
		}
		b.WriteString("| " + strings.Repeat("-", w) + " ")
	}
	b.WriteString("|\n")
}
