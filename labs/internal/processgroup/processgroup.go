// Package processgroup has commands end whole: with all the processes that they started, and only when the lab says so.
package processgroup
