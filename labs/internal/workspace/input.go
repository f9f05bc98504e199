package workspace

import "fmt"

// InputError says what is wrong with the folder or the save that somebody has named. Nothing was changed.
type InputError struct{ error }

// BadInput tells commands to end as after wrong usage.
func (InputError) BadInput() bool { return true }

func (e InputError) Unwrap() error { return e.error }

func refuse(format string, args ...any) error { return InputError{fmt.Errorf(format, args...)} }
