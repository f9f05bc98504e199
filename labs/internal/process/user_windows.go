package process

// UserOf is the user of this process, -1.
func UserOf(string) (int, error) { return -1, nil }
