// Package ledger speaks to the registry of caches, which is outside the cluster and tells nobody what changes in it.
package ledger

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Line is what the ledger says of one Memcached.
type Line struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Size      int32  `json:"size"`
}

// Ledger is the address of one; "" is none.
type Ledger string

// ErrNever means that the same line will not be taken later either.
var ErrNever = errors.New("the registry will never take this line")

// web has patience, as only the line concerned waits with it. It is not led elsewhere: a PUT may become a GET on the way.
var web = &http.Client{
	Timeout:       8 * time.Second,
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// Write makes line the one under uid, whatever is there.
func (l Ledger) Write(ctx context.Context, uid types.UID, line Line) error {
	text, err := json.Marshal(line)
	if err != nil {
		return err
	}
	return l.ask(ctx, http.MethodPut, uid, text)
}

// Strike sees to it that there is no line under uid.
func (l Ledger) Strike(ctx context.Context, uid types.UID) error {
	return l.ask(ctx, http.MethodDelete, uid, nil)
}

func (l Ledger) ask(ctx context.Context, method string, uid types.UID, text []byte) error {
	address, err := url.JoinPath(string(l), "caches", string(uid))
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(text))
	if err != nil {
		return err
	}
	answer, err := web.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	switch status := answer.StatusCode; {
	case status/100 == 2, method == http.MethodDelete && status == http.StatusNotFound:
		return nil
	case method == http.MethodPut && status == http.StatusUnprocessableEntity:
		return ErrNever
	default:
		return fmt.Errorf("the registry answers %d to a %s", status, method)
	}
}
