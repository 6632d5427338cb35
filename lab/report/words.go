package report

import (
	"strings"

	"ngxlab/lab"
	"ngxlab/templates"
)

// Short forms for the document's spans and blocks.

func plain(s string) templates.Text { return templates.Text{{Text: s}} }
func mono(s string) templates.Text  { return styled(s, templates.Mono) }

func styled(s string, style templates.Style) templates.Text {
	return templates.Text{{Text: s, Style: style}}
}

// prose is a sentence in which `names` stand in backticks, as findings, refusals and notes write them.
func prose(s string) templates.Text {
	pieces := strings.Split(s, "`")
	if len(pieces)%2 == 0 { // a backtick of its own
		return plain(s)
	}
	var t templates.Text
	for i, piece := range pieces {
		if piece == "" {
			continue
		}
		style := templates.Plain
		if i%2 == 1 {
			style = templates.Mono
		}
		t = append(t, templates.Span{Text: piece, Style: style})
	}
	return t
}

// join strings texts together.
func join(parts ...templates.Text) templates.Text {
	var all templates.Text
	for _, p := range parts {
		all = append(all, p...)
	}
	return all
}

// listed joins texts with a separator.
func listed(parts []templates.Text, separator string) templates.Text {
	var all templates.Text
	for i, p := range parts {
		if i > 0 {
			all = append(all, templates.Span{Text: separator})
		}
		all = append(all, p...)
	}
	return all
}

// codes sets names in code style, comma-separated.
func codes(names []string) templates.Text {
	var parts []templates.Text
	for _, n := range names {
		parts = append(parts, mono(n))
	}
	return listed(parts, ", ")
}

// orUnknown is s, or the mark of an unknown when it is empty.
func orUnknown(s string) string {
	if s == "" {
		return lab.Unknown
	}
	return s
}

func paragraph(parts ...templates.Text) templates.Block {
	return templates.Block{Paragraph: join(parts...)}
}

func heading(s string) templates.Block { return templates.Block{Heading: s} }

// tone is the style of a verdict word.
func tone(w lab.Word) templates.Style {
	switch w {
	case lab.Helps, lab.AtLeast, lab.Holds, lab.Reproduced:
		return templates.Good
	case lab.Hurts, lab.Contradicted:
		return templates.Bad
	case lab.Undecided, lab.NotMeasurable, lab.NotComparable:
		return templates.Doubt
	}
	return templates.Plain
}

// tableBuilder gathers a table's columns and rows.
type tableBuilder struct{ t templates.Table }

// newTable names the columns; a name that begins with ">" is set to the right, for numbers.
func newTable(columns ...string) *tableBuilder {
	b := &tableBuilder{}
	for _, c := range columns {
		name, number := strings.CutPrefix(c, ">")
		b.t.Head = append(b.t.Head, name)
		b.t.Numbers = append(b.t.Numbers, number)
	}
	return b
}

func (b *tableBuilder) row(cells ...templates.Text) { b.t.Rows = append(b.t.Rows, cells) }

func (b *tableBuilder) block() templates.Block { return templates.Block{Table: &b.t} }

func (b *tableBuilder) empty() bool { return len(b.t.Rows) == 0 }

// dropEmpty takes out the columns in which no row says anything.
func (b *tableBuilder) dropEmpty() {
	var t templates.Table
	t.Rows = make([][]templates.Text, len(b.t.Rows))
	for column, name := range b.t.Head {
		filled := false
		for _, row := range b.t.Rows {
			filled = filled || says(row[column])
		}
		if !filled {
			continue
		}
		t.Head, t.Numbers = append(t.Head, name), append(t.Numbers, b.t.Numbers[column])
		for i, row := range b.t.Rows {
			cell := row[column]
			if !says(cell) {
				cell = plain(lab.Unknown)
			}
			t.Rows[i] = append(t.Rows[i], cell)
		}
	}
	b.t = t
}

// says reports whether a cell has any text.
func says(cell templates.Text) bool {
	for _, span := range cell {
		if span.Text != "" {
			return true
		}
	}
	return false
}
