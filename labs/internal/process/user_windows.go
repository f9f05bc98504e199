package process

import "io/fs"

// Ours says yes: a user has temporary files of their own.
func Ours(fs.FileInfo) bool { return true }

// EndUserOf does nothing here.
func EndUserOf(string) {}

// UserOf is the user of this process, -1.
func UserOf(string) (int, error) { return -1, nil }
