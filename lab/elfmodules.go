package lab

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
)

// moduleNames is the array of C strings, ended by a null pointer, that nginx's configure writes into
// objs/ngx_modules.c since 1.9.11 (auto/modules).
const moduleNames = "ngx_module_names"

// ErrNoSymbols is the error of NginxModules for a binary that was stripped, or is older than the names.
var ErrNoSymbols = errors.New("the binary does not name its modules: it was stripped, or is older than nginx 1.9.11")

// NginxModules are the modules compiled into an nginx binary, by the names that nginx has for them
// ("ngx_http_stub_status_module"), sorted: its own table ngx_module_names, found by the symbol table of the ELF file
// (ELF-64, little endian: amd64 and arm64).
func NginxModules(r io.ReaderAt) ([]string, error) {
	f, err := elf.NewFile(r)
	if err != nil {
		return nil, fmt.Errorf("read the modules of a binary: %w", err)
	}
	defer f.Close() //nolint:errcheck // r is not closed by it
	if f.Class != elf.ELFCLASS64 || f.ByteOrder != binary.LittleEndian {
		return nil, fmt.Errorf("read the modules of a binary: %v, %v is not known", f.Class, f.Data)
	}
	table, ok := symbol(f)
	if !ok {
		return nil, ErrNoSymbols
	}
	names, err := strings64(f, table)
	if err != nil {
		return nil, fmt.Errorf("read the modules of a binary: %w", err)
	}
	slices.Sort(names)
	return names, nil
}

func symbol(f *elf.File) (elf.Symbol, bool) {
	for _, list := range []func() ([]elf.Symbol, error){f.Symbols, f.DynamicSymbols} {
		all, err := list()
		if err != nil {
			continue // no such table
		}
		for _, s := range all {
			if s.Name == moduleNames && s.Size%8 == 0 && s.Size > 0 && s.Size < 1<<16 {
				return s, true
			}
		}
	}
	return elf.Symbol{}, false
}

// strings64 follows the pointers of a table. Those of a binary that is placed anywhere (PIE) stand in its relocations,
// R_X86_64_RELATIVE and R_AARCH64_RELATIVE, as addends.
func strings64(f *elf.File, table elf.Symbol) ([]string, error) {
	pointers, err := at(f, table.Value, table.Size)
	if err != nil {
		return nil, err
	}
	moved := relocations(f, table)
	var names []string
	for i := uint64(0); i < table.Size; i += 8 {
		address, relocated := moved[table.Value+i]
		if !relocated {
			address = binary.LittleEndian.Uint64(pointers[i:])
		}
		if address == 0 {
			break
		}
		name, err := at(f, address, 128)
		if err != nil {
			return nil, err
		}
		text, _, ended := bytes.Cut(name, []byte{0})
		if !ended || len(text) == 0 {
			return nil, fmt.Errorf("%s has no name at %#x", moduleNames, address)
		}
		names = append(names, string(text))
	}
	return names, nil
}

// relocations of addresses within a table → what is to stand there.
func relocations(f *elf.File, table elf.Symbol) map[uint64]uint64 {
	moved := map[uint64]uint64{}
	section := f.Section(".rela.dyn")
	if section == nil {
		return moved
	}
	data, err := section.Data()
	if err != nil {
		return moved
	}
	const size = 24 // r_offset, r_info and r_addend of elf(5), each 8 bytes
	for ; len(data) >= size; data = data[size:] {
		offset, info := binary.LittleEndian.Uint64(data), binary.LittleEndian.Uint64(data[8:])
		kind := uint32(info)
		relative := f.Machine == elf.EM_X86_64 && kind == uint32(elf.R_X86_64_RELATIVE) || f.Machine == elf.EM_AARCH64 && kind == uint32(elf.R_AARCH64_RELATIVE)
		if relative && offset >= table.Value && offset < table.Value+table.Size {
			moved[offset] = binary.LittleEndian.Uint64(data[16:])
		}
	}
	return moved
}

// at reads the bytes that the program has at an address: as many as asked for, fewer at the end of a segment.
func at(f *elf.File, address, size uint64) ([]byte, error) {
	for _, p := range f.Progs {
		if p.Type == elf.PT_LOAD && address >= p.Vaddr && address < p.Vaddr+p.Filesz {
			out := make([]byte, min(size, p.Vaddr+p.Filesz-address))
			_, err := p.ReadAt(out, int64(address-p.Vaddr))
			return out, err
		}
	}
	return nil, fmt.Errorf("nothing is loaded at %#x", address)
}
