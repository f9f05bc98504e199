package watch

import (
	"bytes"
	"context"
	"fmt"
	"os"

	"golang.org/x/term"
)

// Key is a wish that is uttered with one key.
type Key int

// The keys, and what they ask for.
const (
	Hint  Key = iota // h: the next hint
	Next             // n: go on to the next lab
	Again            // r, Enter: check again
	Quit             // q, Ctrl-D: end
)

// Bytes that terminals send.
const (
	endByte    = 4 // Ctrl-D
	escapeByte = 0x1b
)

// Keyboard is a terminal that gives every key at once and shows none of them.
type Keyboard struct {
	file   *os.File
	before *term.State
	keys   chan Key
	ignore func() // ends what follows a stop of the process
}

// OpenKeyboard switches in to single keys, until Close. It returns nil when in is no terminal: then nobody can type.
func OpenKeyboard(in any) (*Keyboard, error) {
	file, ok := in.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return nil, nil
	}
	before, err := term.GetState(int(file.Fd()))
	if err != nil {
		return nil, fmt.Errorf("read the terminal's settings: %w", err)
	}
	k := &Keyboard{file: file, before: before, keys: make(chan Key)}
	if err := singleKeys(int(file.Fd())); err != nil {
		return nil, fmt.Errorf("switch the terminal to single keys: %w", err)
	}
	k.ignore = afterStop(func() { _ = singleKeys(int(file.Fd())) })
	return k, nil
}

// Close gives the terminal back as it was. A nil keyboard, and one that is closed already, are no error.
func (k *Keyboard) Close() error {
	if k == nil {
		return nil
	}
	k.ignore()
	if err := term.Restore(int(k.file.Fd()), k.before); err != nil {
		return fmt.Errorf("give the terminal back (`stty sane` does it): %w", err)
	}
	return nil
}

// Keys are the keys that are typed until ctx ends. It is called once; a nil keyboard has none. Its reader stays
// behind in a read that nothing can end, and ends with the process.
func (k *Keyboard) Keys(ctx context.Context) <-chan Key {
	if k == nil {
		return nil
	}
	go func() {
		buffer := make([]byte, 64)
		for {
			n, err := k.file.Read(buffer)
			if err != nil {
				return // a terminal that went away sends a signal, too
			}
			for _, key := range meant(buffer[:n]) {
				select {
				case k.keys <- key:
				case <-ctx.Done():
					return
				}
			}
		}
	}()
	return k.keys
}

// meant are the keys in what a terminal sent at once. What begins with an escape is an arrow or another key that
// means nothing here, and its letters are none.
func meant(sent []byte) []Key {
	sent, _, _ = bytes.Cut(sent, []byte{escapeByte})
	var keys []Key
	for _, b := range bytes.ToLower(sent) {
		switch b {
		case 'h':
			keys = append(keys, Hint)
		case 'n':
			keys = append(keys, Next)
		case 'r', '\r', '\n':
			keys = append(keys, Again)
		case 'q', endByte:
			keys = append(keys, Quit)
		}
	}
	return keys
}
