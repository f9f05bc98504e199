package server

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/example/operator-lab/labs/classroom/board/page"
	"github.com/example/operator-lab/labs/classroom/board/store"
	"github.com/example/operator-lab/labs/classroom/board/token"
)

// policy lets the page use its own style sheet and scripts and talk to its own board, and nothing else. Text can
// become HTML in no script of it.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// guarded stands before every request: names that are not the board's, pages of others that send forms, and
// browsers that would guess or tell too much.
func (s *Server) guarded(next http.Handler) http.Handler {
	sameOrigin := http.NewCrossOriginProtection().Handler(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		if !ours(r.Host) {
			http.Error(w, "This board is not called by that name.", http.StatusMisdirectedRequest)
			return
		}
		if !encrypted(r) && !s.mayBePlain(r) {
			http.Error(w, "This server takes https alone. Ask your instructor for a new handout.", http.StatusUpgradeRequired)
			return
		}
		if c := connOf(r); c != nil && c.slot.overLimit {
			if _, err := s.holder(r); err != nil {
				h.Set("Retry-After", "1")
				h.Set("Connection", "close")
				http.Error(w, "Too many connections of your address are open.", http.StatusServiceUnavailable)
				return
			}
		}
		sameOrigin.ServeHTTP(w, r)
	})
}

// ours says whether the board may be called by that host. A page elsewhere can make its own name point at this
// machine, and would then be let in by the browser; an address points where it points.
func ours(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = host
	}
	name = strings.ToLower(strings.Trim(name, "[]"))
	if _, err := netip.ParseAddr(name); err == nil {
		return true
	}
	return name == "localhost"
}

// holder finds out who asks: by bearer token, or by the cookie that an instructor's browser has got for one.
func (s *Server) holder(r *http.Request) (store.Holder, error) {
	text, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok {
		cookie, err := r.Cookie(cookieName(r))
		if err != nil {
			return store.Holder{}, store.ErrDenied
		}
		text = cookie.Value
	}
	t, err := token.Parse(text)
	if err != nil {
		return store.Holder{}, store.ErrDenied
	}
	h, err := s.Store.Authenticate(r.Context(), t)
	if c := connOf(r); c != nil && err == nil {
		s.conns.trust(c.slot.from, h.TokenID)
	}
	return h, err
}

// instructor lets only instructors through. Everybody else who asks for a page gets the login.
func (s *Server) instructor(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		h, err := s.holder(r)
		switch {
		case err == nil && h.Instructor:
			next(w, r)
		case err == nil:
			http.Error(w, "A learner's token does not open the board.", http.StatusForbidden)
		case !errors.Is(err, store.ErrDenied):
			s.fail(w, r, err)
		default:
			s.askToken(w, "")
		}
	}
}

// learner lets only learners through, as often as the limits say.
func (s *Server) learner(limits *limits, next LearnerHandler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		h, err := s.holder(r)
		switch {
		case errors.Is(err, store.ErrDenied):
			w.Header().Set("WWW-Authenticate", "Bearer")
			Problem(w, http.StatusUnauthorized, err)
			return
		case err != nil:
			s.fail(w, r, err)
			return
		case h.Instructor:
			Problem(w, http.StatusForbidden, errors.New("this takes a learner's token; an instructor's opens the page"))
			return
		}
		if wait := limits.wait(h.TokenID, s.Now()); wait > 0 {
			TooMany(w, wait)
			return
		}
		next(w, r, h)
	}
}

func (s *Server) askToken(w http.ResponseWriter, message string) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(http.StatusUnauthorized)
	if err := page.RenderLogin(w, message); err != nil {
		s.Log(err.Error())
	}
}

// loginLimit is how long a login form may be, in bytes.
const loginLimit = 4 << 10

// login turns a token into a cookie that no script can read and no other page can use. The cookie is the token:
// so revoking the token ends the session, and a board that starts again has not forgotten it.
func (s *Server) login(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, loginLimit)
	t, err := token.Parse(r.PostFormValue("token"))
	if err != nil {
		s.askToken(w, "This is no token of a board: it begins with labboard-.")
		return
	}
	h, err := s.Store.Authenticate(r.Context(), t)
	switch {
	case errors.Is(err, store.ErrDenied):
		s.askToken(w, "This token has expired, was revoked, or is another board's.")
	case err != nil:
		s.fail(w, r, err)
	case !h.Instructor:
		s.askToken(w, "This is a learner's token, and does not open the board.")
	default:
		http.SetCookie(w, cookie(r, t.Reveal(), cookieAge))
		http.Redirect(w, r, "/", http.StatusSeeOther)
	}
}

func (s *Server) logout(w http.ResponseWriter, r *http.Request) {
	http.SetCookie(w, cookie(r, "", -time.Second))
	http.Redirect(w, r, "/", http.StatusSeeOther)
}

// cookieAge is how long a browser remembers; the token may end earlier.
const cookieAge = 24 * time.Hour

func cookie(r *http.Request, value string, age time.Duration) *http.Cookie {
	return &http.Cookie{
		Name: cookieName(r), Value: value, Path: "/", MaxAge: int(age.Seconds()), HttpOnly: true, SameSite: http.SameSiteStrictMode,
		Secure: encrypted(r),
	}
}

// cookieName has the port in it: browsers do not tell the ports of a host apart, and a second board would log
// the first one out.
func cookieName(r *http.Request) string {
	if addr, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr); ok {
		return "lab-board-" + strconv.Itoa(addr.Port)
	}
	return "lab-board"
}

// valid says whether whoever asked may still read: tokens end while streams go on.
func (s *Server) valid(ctx context.Context, r *http.Request) bool {
	h, err := s.holder(r.WithContext(ctx))
	return err == nil && h.Instructor
}
