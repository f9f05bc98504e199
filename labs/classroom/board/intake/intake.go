// Package intake is the one way by which results come to a board, over the network or from a folder: they are
// read, judged acceptable, and kept.
package intake

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/example/operator-lab/labs/classroom/board/room"
	"github.com/example/operator-lab/labs/classroom/board/store"
	"github.com/example/operator-lab/labs/internal/course"
)

// InvalidError is the error for a document that is no result. Sending it again is of no use.
type InvalidError struct{ Err error }

func (e *InvalidError) Error() string { return e.Err.Error() }
func (e *InvalidError) Unwrap() error { return e.Err }

// Intake keeps results of a course in a store.
type Intake struct {
	Store  *store.Store
	Course *course.Course
	// Now is the board's clock.
	Now func() time.Time
}

// Keep keeps a learner's result; it is on disk when Keep returns. sent is what the learner's clock said just now,
// zero if nobody knows. added is false for a result that is known already. A document that is none is an
// [*InvalidError]; the error wraps [store.ErrQuota] when the learner has left too many.
func (i Intake) Keep(ctx context.Context, learner store.Learner, data []byte, sent time.Time) (added bool, err error) {
	result, err := room.Accept(data, i.Course)
	if err != nil {
		return false, &InvalidError{err}
	}
	document, err := json.Marshal(result)
	if err != nil {
		return false, fmt.Errorf("write result: %w", err)
	}
	if len(document) > room.SizeLimit { // a byte of JSON can become six
		return false, &InvalidError{fmt.Errorf("written anew the result has %d bytes, and a board keeps %d", len(document), room.SizeLimit)}
	}
	return i.Store.AddResult(ctx, &store.Result{
		Learner: learner.ID, Run: result.Run, Lab: result.Lab, At: room.Ended(result, sent, i.Now()), Document: document,
	})
}
