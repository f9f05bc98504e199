package boardtest_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/example/operator-lab/labs/internal/board/boardtest"
	"github.com/example/operator-lab/labs/internal/board/inbox"
	"github.com/example/operator-lab/labs/internal/board/outbox"
	"github.com/example/operator-lab/labs/internal/board/room"
)

// pupil is somebody's side of the board, which listens.
type pupil struct {
	*inbox.Inbox
	heard chan inbox.Message
}

func newPupil(t *testing.T, board *boardtest.Board, name string) *pupil {
	t.Helper()
	box := inbox.Open(t.TempDir(), outbox.Config{URL: board.URL, Token: board.Learner(t, name), Learner: name})
	p := &pupil{box, make(chan inbox.Message, 10)}
	go box.Follow(t.Context(), func(m inbox.Message) { p.heard <- m })
	return p
}

// hears waits for the next message.
func (p *pupil) hears(t *testing.T) inbox.Message {
	t.Helper()
	select {
	case m := <-p.heard:
		return m
	case <-time.After(patience):
		t.Fatal("nothing is heard")
		return inbox.Message{}
	}
}

// messageOf is what stands in a line of what was said, the latest first; "" while there is no such line.
func messageOf(n int) string {
	return fmt.Sprintf(`(document.querySelector("#messages li:nth-child(%d)")?.innerText ?? "").replace(/\s+/g, " ")`, n)
}

// All of it with the keyboard, and with text that would like to be HTML.
func TestAHintGoesFromThePageToTheLearnerAndItsReceiptComesBack(t *testing.T) {
	const attack = `<img src=x onerror="document.title='broken'">`
	board := boardtest.Serve(t, boardtest.Course(t), room.DefaultRules)
	ada := newPupil(t, board, "Ada")
	bob := newPupil(t, board, `<b onclick=alert(1)>Bob</b>`)
	b := look(t, laptop)
	b.open(board)
	b.do(b.until(`document.querySelectorAll("#say-to option").length === 3`))

	// To one, from their cell.
	b.do(chromedp.Focus(chromedp.CSS(`#room a[href="/cell/1/4"]`)))
	b.press(kb.Enter)
	b.do(b.until(`document.getElementById("detail").open`), chromedp.Focus(chromedp.CSS("#detail textarea")))
	b.press("W", "h", "y", "?", kb.Tab, kb.Enter)
	b.do(b.until(`document.getElementById("said").textContent === "Sent."`))
	b.holds(`document.getElementById("detail").open && document.querySelector("#detail textarea").value === ""`)
	b.shoot("said-in-detail")
	if m := ada.hears(t); m.Text != "Why?" || m.All {
		t.Errorf("Ada hears %+v", m)
	}
	if messages, err := bob.Ask(t.Context()); err != nil || len(messages) != 0 {
		t.Errorf("Bob gets %v, %v", messages, err)
	}
	b.press(kb.Escape)
	b.do(b.until(`document.querySelector("#messages small")?.textContent === "seen"`))

	// To all, from the top of the page.
	b.do(chromedp.Focus(chromedp.CSS("#say summary")))
	b.press(kb.Enter, kb.Tab)
	b.is(`document.activeElement.id`, "say-to")
	b.press(kb.Tab)
	b.do(chromedp.SendKeys(chromedp.CSS("#say textarea"), attack))
	b.press(kb.Tab, " ")
	b.do(b.until(`document.querySelectorAll("#messages li").length === 2`))
	if m := bob.hears(t); m.Text != attack || !m.All {
		t.Errorf("Bob hears %+v", m)
	}
	b.do(b.until(messageOf(1) + `.includes("seen by 2 of 2")`))
	b.holds(messageOf(1) + `.includes("<img") && document.querySelectorAll("img, b[onclick]").length === 0 && document.title !== "broken"`)
	b.shoot("said")

	// Taken back: nobody gets it any more.
	b.do(chromedp.Focus(chromedp.CSS("#messages li:first-child button")))
	b.press(kb.Enter)
	b.do(b.until(`document.querySelectorAll("#messages li").length === 1`))
	if messages, err := ada.Ask(t.Context()); err != nil || len(messages) != 1 {
		t.Errorf("Ada still gets %v, %v", messages, err)
	}
}

func TestThePageBringsEverybodyToAStepAndSaysWhoFollows(t *testing.T) {
	c := boardtest.Course(t)
	board := boardtest.Serve(t, c, room.DefaultRules)
	ada, bob := newPupil(t, board, "Ada"), newPupil(t, board, "Bob")
	dark := phone
	dark.dark = true
	b := look(t, dark)
	b.open(board)
	b.do(b.until(`document.querySelectorAll("#room tbody tr").length === 2`), chromedp.Focus(chromedp.CSS("#say summary")))
	b.press(kb.Enter)
	b.do(visible("#say-lab"), chromedp.Focus(chromedp.CSS("#say-lab")))
	b.press(kb.ArrowDown, kb.ArrowDown, kb.ArrowDown, kb.ArrowDown)
	b.is(`document.getElementById("say-lab").value`, "5")
	b.press(kb.Tab, kb.Enter)
	step := ada.hears(t)
	if step.Kind != inbox.Step || step.Lab != 5 {
		t.Fatalf("Ada hears %+v", step)
	}
	b.do(b.until(messageOf(1) + `.includes("0 of 2 are at lab 5; waiting for: Ada, Bob")`))
	if err := ada.Answer(t.Context(), step, inbox.Joined); err != nil {
		t.Fatal(err)
	}
	b.do(b.until(messageOf(1) + `.includes("1 of 2 is at lab 5; waiting for: Bob")`))
	b.holds(fits)
	b.shoot("step-phone")
	if err := bob.Answer(t.Context(), step, inbox.Stays); err != nil {
		t.Fatal(err)
	}
	b.do(b.until(messageOf(1) + `.includes("staying where they are: Bob")`))
}

func TestHintsAreSentWithoutScripts(t *testing.T) {
	board := boardtest.Serve(t, boardtest.Course(t), room.DefaultRules)
	ada := newPupil(t, board, "Ada")
	plain := laptop
	plain.noScript = true
	b := look(t, plain)
	b.do(chromedp.Navigate(board.URL), visible("#token"), chromedp.SendKeys(chromedp.CSS("#token"), board.Instructor+kb.Enter), visible("#room"))
	b.do(chromedp.Focus(chromedp.CSS("#say summary"))) // a click would go where it was before the style sheet came
	b.press(kb.Enter)
	b.do(visible("#say textarea"), chromedp.SendKeys(chromedp.CSS("#say textarea"), "look up"))
	b.do(chromedp.Click(chromedp.CSS("#say form button")), visible("#messages li"))
	if m := ada.hears(t); m.Text != "look up" {
		t.Errorf("Ada hears %+v", m)
	}
	b.do(chromedp.Navigate(board.URL+"/cell/1/1"), visible("main.detail textarea"), chromedp.SendKeys(chromedp.CSS("main.detail textarea"), "and down"))
	b.do(chromedp.Click(chromedp.CSS("main.detail form button")), visible("#messages li:nth-child(2)"))
	if m := ada.hears(t); m.Text != "and down" || m.All {
		t.Errorf("Ada hears %+v", m)
	}
}
