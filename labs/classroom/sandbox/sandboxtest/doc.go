// Package sandboxtest tries what must not be possible, in real containers.
package sandboxtest
