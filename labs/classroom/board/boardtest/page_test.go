package boardtest_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/example/operator-lab/labs/classroom/board/boardtest"
	"github.com/example/operator-lab/labs/classroom/board/room"
	"github.com/example/operator-lab/labs/internal/verdict"
)

var (
	laptop    = screen{width: 1280, height: 800}
	projector = screen{width: 1920, height: 1080}
	phone     = screen{width: 390, height: 844}
)

// fits says whether nothing of the page lies beside the screen.
const fits = `document.documentElement.scrollWidth <= innerWidth`

// cellOf finds a cell's link.
func cellOf(learner, lab int) string {
	return fmt.Sprintf(`document.querySelector('#room a[href="/cell/%d/%d"]')`, learner, lab)
}

func TestTheBrowserLeavesNothing(t *testing.T) {
	dir, err := os.MkdirTemp("", "left-") //nolint:usetesting // as for a profile
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	t.Setenv("TMPDIR", dir)
	t.Run("look", func(t *testing.T) { open(t, phone).do(chromedp.Navigate("about:blank")) })
	left, err := os.ReadDir(dir)
	if err != nil || len(left) > 0 {
		t.Errorf("the browser leaves %v, %v", left, err)
	}
}

func TestAnEmptyRoomSaysHowPeopleGetIn(t *testing.T) {
	board := boardtest.Serve(t, boardtest.Course(t), room.DefaultRules)
	b := open(t, laptop)
	b.open(board)
	b.is(`document.getElementById("headline").textContent`, "Nobody is here yet.")
	b.holds(`document.getElementById("empty").checkVisibility() && !document.getElementById("room").checkVisibility()`)
	b.shoot("empty")
	board.Learner(t, "Ada") // by another process, for all that the server knows
	b.do(b.until(`document.querySelectorAll("#room tbody tr").length === 1`))
	b.holds(`[...document.querySelectorAll(".top .none")].every((p) => p.checkVisibility())`)
	b.holds(`!document.getElementById("empty").checkVisibility() && document.getElementById("room").checkVisibility()`)
	b.holds(`!location.href.includes("token")`)
}

func TestAFullRoomFitsEveryScreen(t *testing.T) {
	board := boardtest.Serve(t, boardtest.Course(t), room.DefaultRules)
	board.Fill(t, 60, time.Now())
	dark := projector
	dark.dark = true
	for name, s := range map[string]screen{"full-projector": projector, "full-dark": dark, "full-laptop": laptop, "full-phone": phone} {
		t.Run(name, func(t *testing.T) {
			b := open(t, s)
			b.open(board)
			b.shoot(name)
			b.holds(`document.querySelectorAll("#room tbody tr").length === 60`)
			b.holds(fits)
			// Every cell of a state other than untried says so in a symbol and a word.
			b.holds(`[...document.querySelectorAll("#room td:not(.untried)")].every((td) => td.querySelector("b").textContent && td.querySelector("span").textContent)`)
			if s.width == phone.width {
				b.do(chromedp.ScrollIntoView(chromedp.CSS("#room tbody tr:nth-child(12)")))
				b.shoot(name + "-room")
			}
			if s.width == projector.width {
				b.holds(`document.getElementById("room").getBoundingClientRect().bottom <= innerHeight`)
			}
		})
	}
}

func TestOneWhoIsStuckIsOnTop(t *testing.T) {
	c := boardtest.Course(t)
	board := boardtest.Serve(t, c, room.DefaultRules)
	now := time.Now()
	ada, bob := board.Learner(t, "Ada"), board.Learner(t, "Bob")
	b := open(t, laptop)
	b.open(board)
	b.holds(`document.getElementById("stuck").children.length === 0`)
	red := c.Labs[3].Checks[0]
	board.Send(t, bob, boardtest.Result(c, 1, "bob-1", now))
	for try := range 3 {
		board.Send(t, ada, boardtest.Result(c, 4, fmt.Sprint("ada-", try), now.Add(time.Duration(try-3)*time.Minute), red.ID))
	}
	b.do(b.until(`document.getElementById("stuck").children.length === 1`))
	b.is(`document.querySelector("#stuck li").innerText.replace(/\s+/g, " ")`, "Ada, lab 4 "+red.Title+" red for 3 min, 3 tries")
	b.is(`document.querySelector("#obstacles li").innerText.replace(/\s+/g, " ")`, "1 learner Lab 4: "+red.Title+" Ada")
	b.is(`document.querySelector("#steps li small").textContent`, "1 of 2")
	b.is(`document.querySelector("#room tr.stuck th").textContent`, "Ada")
	b.shoot("stuck")
	board.Send(t, ada, boardtest.Result(c, 4, "ada-fixed", now))
	b.do(b.until(`document.getElementById("stuck").children.length === 0`))
	b.is(cellOf(1, 4)+`.innerText.replace(/\s+/g, " ")`, "4 ✓ pass")
}

func TestACellOpensAndGivesTheFocusBack(t *testing.T) {
	c := boardtest.Course(t)
	board := boardtest.Serve(t, c, room.DefaultRules)
	ada := board.Learner(t, "Ada")
	board.Learner(t, "Bob")
	red := c.Labs[3].Checks[0]
	board.Send(t, ada, boardtest.Result(c, 4, "first", time.Now().Add(-time.Minute), red.ID), boardtest.Result(c, 4, "second", time.Now(), c.Labs[3].Checks[1].ID))
	b := open(t, laptop)
	b.open(board)
	b.do(chromedp.Focus(chromedp.CSS(`#room a[href="/cell/1/1"]`)))
	b.press(kb.ArrowDown, kb.ArrowRight, kb.ArrowRight, kb.ArrowRight, kb.ArrowUp)
	b.is(`document.activeElement.getAttribute("href")`, "/cell/1/4")
	b.press(kb.Enter)
	b.do(b.until(`document.getElementById("detail").open`))
	b.is(`document.getElementById("detail-title").textContent`, "Ada, lab 4: "+c.Labs[3].Title)
	b.holds(`document.getElementById("detail-report").textContent.includes("make hint-4")`)
	b.is(`document.querySelector("#detail-checks .fail span").textContent`, c.Labs[3].Checks[1].Title)
	b.holds(`document.querySelectorAll("#detail-history li").length === 2`)
	b.shoot("detail")
	// An older run, and a newer one while the dialog is open.
	b.do(chromedp.Click(chromedp.CSS(`#detail-history li:last-child a`)), b.until(`document.querySelector("#detail-checks .fail span").textContent === `+fmt.Sprintf("%q", red.Title)))
	b.press(kb.Escape)
	b.do(b.until(`!document.getElementById("detail").open`))
	b.is(`document.activeElement.getAttribute("href")`, "/cell/1/4")
	b.press(kb.Enter)
	b.do(b.until(`document.getElementById("detail").open`))
	board.Send(t, ada, boardtest.Result(c, 4, "third", time.Now()))
	b.do(b.until(`document.getElementById("detail-headline").className === "pass"`))
	b.press(kb.Escape, kb.Home)
	b.is(`document.activeElement.getAttribute("href")`, "/cell/1/1")
	b.holds(`document.querySelectorAll('#room a[tabindex="0"]').length === 1`)
}

// Everything that a learner can say is said as an attack, in every place of the page.
func TestTextFromLearnersIsNeverHTML(t *testing.T) {
	const attack = `"><img src=x onerror="document.title='broken'"><script>document.title='broken'</script>`
	c := boardtest.Course(t)
	board := boardtest.Serve(t, c, room.Rules{Tries: 1})
	mallory := board.Learner(t, `<b onclick=alert(1)>Mallory</b>`)
	r := boardtest.Result(c, 4, "attack", time.Now(), c.Labs[3].Checks[0].ID)
	for i := range r.Checks {
		r.Checks[i].Expected, r.Checks[i].Seen, r.Checks[i].Title, r.Checks[i].Cause = attack, attack, attack, attack
	}
	r.Cluster.Provider, r.Advice, r.Trace = attack, []string{attack}, attack
	built := boardtest.Result(c, 5, "build", time.Now(), c.Labs[4].Checks[0].ID)
	built.Build = &verdict.Build{Output: attack}
	b := open(t, laptop)
	b.open(board)
	board.Send(t, mallory, r, built)
	b.do(b.until(`document.getElementById("stuck").children.length === 1`))
	for _, lab := range []int{4, 5} {
		b.do(chromedp.Evaluate[chromedp.Void](cellOf(1, lab)+".click()"), b.until(`document.getElementById("detail").open`))
		b.holds(`document.getElementById("detail-report").textContent.includes("<img") && document.querySelectorAll("#detail img, #detail script").length === 0`)
		if lab == 4 {
			b.shoot("hostile")
		}
		b.press(kb.Escape)
	}
	for _, path := range []string{"/", "/cell/1/4", "/cell/1/5"} {
		b.do(chromedp.Navigate(board.URL+path), visible("main"))
		b.holds(`document.querySelectorAll("img, main script, b[onclick]").length === 0 && document.body.textContent.includes("Mallory")`)
		b.holds(`document.title !== "broken"`)
	}
}

func TestThePageNeedsNeitherScriptsNorTheInternet(t *testing.T) {
	board := boardtest.Serve(t, boardtest.Course(t), room.DefaultRules)
	board.Fill(t, 12, time.Now())
	plain := laptop
	plain.noScript = true
	b := open(t, plain)
	b.do(chromedp.Navigate(board.URL), visible("#token"), chromedp.SendKeys(chromedp.CSS("#token"), board.Instructor+kb.Enter), visible("#room"))
	b.shoot("without-scripts")
	b.do(chromedp.Click(chromedp.CSS(`#room a[href="/cell/3/3"]`)), visible("main.detail pre"), visible("main.detail .history li"))
	b.shoot("without-scripts-detail")
	b.do(chromedp.Click(chromedp.CSS(`main.detail p a`)), visible("#room"))

	scripted := open(t, laptop)
	scripted.open(board)
	for _, of := range []*browser{b, scripted} {
		if len(of.asked) < 3 {
			t.Errorf("only %v was asked for", of.asked)
		}
		for _, address := range of.asked {
			if !strings.HasPrefix(address, board.URL) {
				t.Errorf("the page asks for %s", address)
			}
		}
	}
}

// A laptop that slept and a board that was started anew: the page catches up by itself.
func TestThePageCatchesUp(t *testing.T) {
	c := boardtest.Course(t)
	board := boardtest.Serve(t, c, room.DefaultRules)
	ada := board.Learner(t, "Ada")
	b := open(t, laptop)
	b.open(board)
	b.do(b.until(cellOf(1, 1) + " !== null"))
	b.hush(true)
	board.Stop(t)
	b.do(b.until(`document.getElementById("live").className === "off"`))
	b.shoot("off")
	board.Start(t)
	board.Send(t, ada, boardtest.Result(c, 1, "while-away", time.Now()))
	board.Learner(t, "Aaron")
	b.do(b.until(`document.getElementById("live").className === "on"`), b.until(cellOf(1, 1)+`.parentElement.className === "pass"`))
	b.do(b.until(`document.querySelector("#room tbody th").textContent === "Aaron"`))
	b.holds(`document.querySelectorAll("#room tbody tr").length === 2`)
}

// The token ends while the page is open: it must not go on showing the room.
func TestARevokedTokenEndsThePage(t *testing.T) {
	board := boardtest.Serve(t, boardtest.Course(t), room.DefaultRules)
	board.Learner(t, "Ada")
	b := open(t, laptop)
	b.open(board)
	b.hush(true)
	if _, err := board.Store.Revoke(t.Context(), "instructor"); err != nil {
		t.Fatal(err)
	}
	b.do(visible("#token"))
	b.holds(`!document.body.textContent.includes("Ada")`)
}
