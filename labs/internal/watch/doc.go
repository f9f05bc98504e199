// Package watch checks a lab again whenever the learner saves.
//
// [Files] says when what a verdict depends on has changed, [Keys] what the learner types, and a [Session] turns
// both into checks, of which there is never more than one.
package watch
