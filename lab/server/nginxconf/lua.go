package nginxconf

import (
	"bytes"
	"fmt"
	"strings"
)

// lua skips Lua code behind an opening brace up to and with its closing brace. Braces in strings, long brackets and
// comments do not count.
func (p *parser) lua() error {
	for depth := 1; p.at < len(p.conf); {
		var err error
		switch c := p.conf[p.at]; {
		case c == '{':
			depth++
			p.at++
		case c == '}':
			depth--
			p.at++
			if depth == 0 {
				return nil
			}
		case c == '"' || c == '\'':
			err = p.closing(c)
		case c == '[':
			err = p.long()
		case bytes.HasPrefix(p.conf[p.at:], []byte("--")):
			err = p.comment()
		default:
			p.at++
		}
		if err != nil {
			return err
		}
	}
	return fmt.Errorf("unexpected end of file, expecting the \"}\" of a Lua block")
}

// long skips a long bracket such as [[…]] or [==[…]==], or the single bracket that it turns out to be.
func (p *parser) long() error {
	level := 0
	for p.at+1+level < len(p.conf) && p.conf[p.at+1+level] == '=' {
		level++
	}
	open := p.at + 1 + level
	if open >= len(p.conf) || p.conf[open] != '[' {
		p.at++
		return nil
	}
	closing := "]" + strings.Repeat("=", level) + "]"
	end := bytes.Index(p.conf[open+1:], []byte(closing))
	if end < 0 {
		p.at = len(p.conf)
		return fmt.Errorf("unexpected end of file, expecting %q", closing)
	}
	p.at = open + 1 + end + len(closing)
	return nil
}

// comment skips a Lua comment: a long one, or to the end of the line.
func (p *parser) comment() error {
	p.at += 2
	if p.at < len(p.conf) && p.conf[p.at] == '[' {
		before := p.at
		if err := p.long(); err != nil {
			return err
		}
		if p.at > before+1 {
			return nil
		}
	}
	p.line()
	return nil
}
