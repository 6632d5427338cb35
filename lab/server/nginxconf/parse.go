// Package nginxconf edits nginx configurations byte by byte: an edit replaces the bytes of its directive and nothing
// else, so that comments, order and spacing stay as they were.
//
// The grammar is that of ngx_conf_read_token (nginx 1.22, src/core/ngx_conf_file.c): a word ends at white space, ; or {,
// but for the { of ${variable}; a quote or # counts only where a word begins; a byte order mark is part of the first
// word. Of *_by_lua_block it is that of lua-nginx-module's own lexer (0.10, src/ngx_http_lua_lex.rl). Functions on bytes
// take include for a directive as any other; those of Files follow it.
package nginxconf

import (
	"bytes"
	"fmt"
	"strings"
)

// Directive is one directive of a configuration. Positions are byte offsets; those of a directive are half-open.
type Directive struct {
	Name  string      // as nginx reads it, as the arguments are
	Args  []string    // without quotes, and with \" \' \\ \t \r \n translated; other backslashes stay
	Body  []Directive // of a block, in order; nil for a Lua block
	Block bool
	File  string // that it stands in, of Files; "" otherwise
	Start int    // of the name
	Words int    // end of the name
	Stop  int    // of the ';' or '{' that ends the arguments
	End   int    // after the ';' or '}'
}

// Parse returns the directives of the main context in order. Errors carry the line, from 1.
func Parse(conf []byte) ([]Directive, error) {
	p := parser{conf: conf}
	list, err := p.block(0)
	if err != nil {
		return nil, fmt.Errorf("line %d: %w", 1+bytes.Count(conf[:min(p.at, len(conf))], []byte("\n")), err)
	}
	return list, nil
}

// depthLimit bounds how deep blocks nest; nginx itself needs four.
const depthLimit = 64

type parser struct {
	conf []byte
	at   int
}

// block reads directives up to the end of the file (depth 0) or the closing brace, which it leaves.
func (p *parser) block(depth int) ([]Directive, error) {
	if depth > depthLimit {
		return nil, fmt.Errorf("more than %d blocks in each other", depthLimit)
	}
	list := []Directive{}
	for {
		p.space()
		switch {
		case p.at == len(p.conf) && depth == 0:
			return list, nil
		case p.at == len(p.conf):
			return nil, fmt.Errorf("unexpected end of file, expecting \"}\"")
		case p.conf[p.at] == '}' && depth > 0:
			return list, nil
		}
		d, err := p.directive(depth)
		if err != nil {
			return nil, err
		}
		list = append(list, d)
	}
}

// directive reads one directive with its body.
func (p *parser) directive(depth int) (Directive, error) {
	d := Directive{Start: p.at}
	for {
		p.space()
		if p.at == len(p.conf) {
			return d, fmt.Errorf("unexpected end of file, expecting \";\" or \"}\"")
		}
		if c := p.conf[p.at]; c == ';' || c == '{' || c == '}' {
			break
		}
		word, err := p.word()
		if err != nil {
			return d, err
		}
		if d.Words == 0 {
			d.Name, d.Words = word, p.at
			continue
		}
		d.Args = append(d.Args, word)
	}
	end := p.conf[p.at]
	if d.Words == 0 || end == '}' {
		return d, fmt.Errorf("unexpected %q", end)
	}
	d.Stop = p.at
	p.at++
	if end == '{' {
		if err := p.body(&d, depth); err != nil {
			return d, err
		}
	}
	d.End = p.at
	return d, nil
}

// body reads what follows the opening brace, and the closing one.
func (p *parser) body(d *Directive, depth int) error {
	d.Block = true
	if strings.HasSuffix(d.Name, "_by_lua_block") {
		return p.lua()
	}
	body, err := p.block(depth + 1)
	if err != nil {
		return err
	}
	d.Body = body
	p.at++
	return nil
}

// space skips white space and comments.
func (p *parser) space() {
	for p.at < len(p.conf) {
		switch c := p.conf[p.at]; {
		case isSpace(c):
			p.at++
		case c == '#':
			p.line()
		default:
			return
		}
	}
}

// line skips to the end of the line.
func (p *parser) line() {
	end := bytes.IndexByte(p.conf[p.at:], '\n')
	if end < 0 {
		p.at = len(p.conf)
		return
	}
	p.at += end + 1
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\r' || c == '\n' }

// word reads a quoted or plain word. A brace after $ belongs to a variable, a closing brace inside a plain word to it.
func (p *parser) word() (string, error) {
	if q := p.conf[p.at]; q == '"' || q == '\'' {
		return p.quoted(q)
	}
	start, variable := p.at, false
	for p.at < len(p.conf) {
		c := p.conf[p.at]
		if isSpace(c) || c == ';' || c == '{' && !variable {
			break
		}
		variable = c == '$' || c == '{' && variable
		if c == '\\' && p.at+1 < len(p.conf) {
			p.at++
		}
		p.at++
	}
	return unescaped(p.conf[start:p.at]), nil
}

// escapes are what nginx translates, in quotes and outside. A backslash before anything else stays, with what follows.
var escapes = strings.NewReplacer(`\"`, `"`, `\'`, `'`, `\\`, `\`, `\t`, "\t", `\r`, "\r", `\n`, "\n")

func unescaped(word []byte) string { return escapes.Replace(string(word)) }

// quoted reads a word in quotes; what follows must be a space or the end of the arguments.
func (p *parser) quoted(q byte) (string, error) {
	start := p.at + 1
	if err := p.closing(q); err != nil {
		return "", err
	}
	word := unescaped(p.conf[start : p.at-1])
	if p.at < len(p.conf) {
		if c := p.conf[p.at]; !isSpace(c) && c != ';' && c != '{' && c != ')' {
			return "", fmt.Errorf("unexpected %q after a quoted word", c)
		}
	}
	return word, nil
}

// closing moves behind the quote that ends the string begun at the present position; a backslash escapes.
func (p *parser) closing(q byte) error {
	for p.at++; p.at < len(p.conf); p.at++ {
		switch p.conf[p.at] {
		case '\\':
			p.at++
		case q:
			p.at++
			return nil
		}
	}
	p.at = len(p.conf)
	return fmt.Errorf("unexpected end of file, expecting %q", q)
}
