//go:build linux

// Command hostile does what a learner's program must not be able to do. It prints "did ..." for whatever works, and
// "done" at its end.
//
//	hostile read WORD           finds files with the word in them, wherever it can look
//	hostile connect ADDRESS...  connects to each
//	hostile rise                gets more rights, or into the first process
//	hostile write               writes wherever it can, as much as it can
//	hostile leave N             leaves so many MB in its home
//	hostile fork|eat|print      takes processes, memory, or paper, without end
//	hostile queue               fills the queues of many connections, and resets them: they keep what nobody has read
//	hostile crumbs              fills the queues of a few with single bytes, each in memory of its own
//	hostile signal              takes processes while it keeps the first process busy with signals
package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"
)

func main() {
	switch os.Args[1] {
	case "read":
		read(os.Args[2])
	case "connect":
		connect(os.Args[2:])
	case "rise":
		rise()
	case "write":
		write()
	case "leave":
		n, _ := strconv.Atoi(os.Args[2])
		_ = os.WriteFile("left", make([]byte, n<<20), 0o600)
		_ = os.Symlink("/etc/shadow", "shadow")
	case "signal":
		go func() {
			for {
				_ = syscall.Kill(1, 40) // the kernel keeps a queue of these
			}
		}()
		fallthrough
	case "fork":
		for {
			if cmd := exec.Command("/proc/self/exe", "fork"); cmd.Start() != nil {
				time.Sleep(time.Millisecond)
			}
		}
	case "watch":
		watch()
	case "queue":
		queue()
	case "crumbs":
		crumbs()
	case "eat":
		for eaten := [][]byte{}; ; {
			eaten = append(eaten, bytes.Repeat([]byte{1}, 64<<20))
		}
	case "print":
		for line := bytes.Repeat([]byte("all work and no play\n"), 10_000); ; {
			if _, err := os.Stdout.Write(line); err != nil {
				return
			}
		}
	}
	fmt.Println("done")
}

// watch takes what the kernel keeps for whoever waits for a file: each of many waits for each of many others.
func watch() {
	var files []int
	for len(files) < 1500 {
		fd, _, errno := syscall.Syscall(syscall.SYS_EVENTFD2, 0, 0, 0)
		if errno != 0 {
			break
		}
		files = append(files, int(fd))
	}
	for {
		waits, err := syscall.EpollCreate1(0)
		if err != nil {
			break
		}
		for _, fd := range files {
			if err := syscall.EpollCtl(waits, syscall.EPOLL_CTL_ADD, fd, &syscall.EpollEvent{Events: syscall.EPOLLIN}); err != nil {
				did("take all: %v", err)
				break
			}
		}
	}
	time.Sleep(time.Hour)
}

// pair is a connection of this program to itself.
func pair(l net.Listener) (sends, receives net.Conn) {
	sends, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		panic(err)
	}
	receives, err = l.Accept()
	if err != nil {
		panic(err)
	}
	return sends, receives
}

// queue fills the queues of connections to itself, and resets them, so that no list of the kernel's has them.
func queue() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	var kept []net.Conn // unread
	for range 300 {
		sends, receives := pair(l)
		kept = append(kept, receives)
		_ = sends.SetDeadline(time.Now().Add(10 * time.Millisecond))
		for err := error(nil); err == nil; {
			_, err = sends.Write(make([]byte, 1<<20))
		}
		_ = sends.(*net.TCPConn).SetLinger(0)
		sends.Close()
	}
	time.Sleep(time.Minute)
	runtime.KeepAlive(kept)
}

// crumbs sends single bytes over one connection after the other, so that the kernel cannot join them. Whoever receives has read for a
// while, so that the kernel has made room, and reads no more.
func crumbs() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	var conns, kept []net.Conn
	for range 30 {
		sends, receives := pair(l)
		const much = 16 << 20
		go func() { _, _ = sends.Write(make([]byte, much)) }()
		_, _ = io.CopyN(io.Discard, receives, much)
		conns, kept = append(conns, sends), append(kept, receives)
	}
	before, sent := connectionMemory(), 0
	for begun := time.Now(); time.Since(begun) < 3*time.Second; {
		for _, conn := range conns {
			_ = conn.SetWriteDeadline(time.Now().Add(10 * time.Millisecond)) // a full one may have room again
			n, _ := conn.Write([]byte{1})
			sent += n
		}
		if all := connectionMemory() - before; all > 64 {
			did("take %d MB with %d bytes", all, sent)
			return
		}
	}
	runtime.KeepAlive(kept)
}

// connectionMemory is what all connections of the machine take, in MB.
func connectionMemory() int {
	stat, _ := os.ReadFile("/proc/net/sockstat")
	_, text, _ := strings.Cut(string(stat), " mem ")
	text, _, _ = strings.Cut(text, "\n")
	pages, _ := strconv.Atoi(text)
	return pages * os.Getpagesize() >> 20
}

func did(format string, args ...any) { fmt.Printf("did "+format+"\n", args...) }

// read looks into every file but those of the kernel, and says which files there are.
func read(word string) {
	_ = filepath.WalkDir("/", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case path == "/sys" || path == "/dev" || strings.HasPrefix(path, "/proc/") && entry.IsDir() && path != "/proc/1" && path != "/proc/1/root":
			return fs.SkipDir
		case err != nil || !entry.Type().IsRegular() || strings.HasPrefix(path, "/proc"):
			return nil //nolint:nilerr // it looks elsewhere
		}
		fmt.Println("saw", path)
		if data, err := os.ReadFile(path); err == nil && bytes.Contains(data, []byte(word)) {
			did("read %s", path)
		}
		return nil
	})
	for _, path := range []string{"/etc/shadow", "/proc/1/environ", "/proc/1/root/etc/hostname", "/var/run/docker.sock", "/run/docker.sock"} {
		if _, err := os.ReadFile(path); err == nil {
			did("read %s", path)
		}
	}
}

func connect(addresses []string) {
	for _, address := range addresses {
		network := "tcp"
		if strings.HasPrefix(address, "@") || strings.HasPrefix(address, "/") {
			network = "unix"
		}
		conn, err := net.DialTimeout(network, address, 3*time.Second)
		if err != nil {
			continue
		}
		_ = conn.SetDeadline(time.Now().Add(3 * time.Second))
		answer, _ := io.ReadAll(io.LimitReader(conn, 5))
		did("connect to %s: %s", address, answer)
		conn.Close()
	}
	// The way out that there is, used by hand: it leads to the addresses of its list, and answers nobody else's questions.
	for _, role := range []string{"c", "o", "s", "r", "r\x00", "r\x01", "r\x02", "r\xff"} {
		conn, err := net.DialTimeout("unix", "/lab/socket", 3*time.Second)
		if err != nil {
			continue
		}
		_ = conn.SetDeadline(time.Now().Add(time.Second))
		_, _ = conn.Write([]byte(role))
		answer, _ := io.ReadAll(io.LimitReader(conn, 5))
		fmt.Printf("call %q: %q\n", role, answer)
		conn.Close()
	}
}

func rise() {
	status, _ := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(status)) {
		switch name, value, _ := strings.Cut(strings.TrimSpace(line), ":\t"); name {
		case "Uid", "Gid", "CapEff", "CapPrm", "CapBnd", "NoNewPrivs":
			fmt.Println(name, value)
		}
	}
	for name, try := range map[string]func() error{
		"become root": func() error { return syscall.Setuid(0) },
		"mount":       func() error { return syscall.Mount("none", "/tmp", "tmpfs", 0, "") },
		"remount":     func() error { return syscall.Mount("", "/", "", syscall.MS_REMOUNT, "") },
		"make a namespace": func() error { // unshare(2) does so for programs of one thread alone, and Go has several
			return (&exec.Cmd{Path: "/proc/self/exe", SysProcAttr: &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER}}).Start()
		},
		"filter its calls":   filterCalls,
		"turn core dumps on": func() error { return syscall.Setrlimit(syscall.RLIMIT_CORE, &syscall.Rlimit{}) },
		"take all asynchronous input": func() error {
			var all uintptr
			if _, _, errno := syscall.Syscall(syscall.SYS_IO_SETUP, 1, uintptr(unsafe.Pointer(&all)), 0); errno != 0 {
				return errno
			}
			return nil
		},
		"make a device":   func() error { return syscall.Mknod("/tmp/disk", syscall.S_IFBLK|0o666, 8<<8) },
		"trace process 1": func() error { return syscall.PtraceAttach(1) },
		"be traced": func() error {
			return (&exec.Cmd{Path: "/proc/self/exe", SysProcAttr: &syscall.SysProcAttr{Ptrace: true}}).Start()
		},
		"ask the kernel for news":  socket(syscall.AF_NETLINK, syscall.SOCK_RAW, 0),
		"call the machine's owner": socket(40, syscall.SOCK_STREAM, 0), // AF_VSOCK
		"ping":                     socket(syscall.AF_INET, syscall.SOCK_DGRAM, syscall.IPPROTO_ICMP),
		"speak IPv6":               socket(syscall.AF_INET6, syscall.SOCK_STREAM, 0),
		"ping by IPv6":             socket(syscall.AF_INET6, syscall.SOCK_DGRAM, syscall.IPPROTO_ICMPV6),
		"speak UDP":                socket(syscall.AF_INET, syscall.SOCK_DGRAM|syscall.SOCK_CLOEXEC, 0),
		"speak UDP-Lite":           socket(syscall.AF_INET6, syscall.SOCK_DGRAM, 136),
		"speak MPTCP":              socket(syscall.AF_INET, syscall.SOCK_STREAM, 262),
		"make a pair of another family": func() error {
			_, err := syscall.Socketpair(syscall.AF_INET, syscall.SOCK_STREAM, 0)
			return asked(err)
		},
		"have a longer queue":     option(syscall.SOL_SOCKET, syscall.SO_RCVBUF),
		"have other congestion":   option(syscall.SOL_TCP, syscall.TCP_CONGESTION),
		"have options of packets": option(syscall.SOL_IP, syscall.IP_TTL),
		"lock a file":             func() error { return syscall.Flock(int(os.Stdout.Fd()), syscall.LOCK_SH) },
		"lock a part of a file":   func() error { return control(syscall.F_SETLK, &syscall.Flock_t{Type: syscall.F_RDLCK}) },
		"send control data":       sendControlData,
		"splice":                  splice,
		"lease a file":            func() error { return control(syscall.F_SETLEASE, nil) },
		"lower process 1":         func() error { return syscall.Setpriority(syscall.PRIO_PROCESS, 1, 19) },
		"limit process 1": func() error {
			few := syscall.Rlimit{Cur: 3, Max: 4096}
			_, _, errno := syscall.RawSyscall6(syscall.SYS_PRLIMIT64, 1, syscall.RLIMIT_NOFILE, uintptr(unsafe.Pointer(&few)), 0, 0, 0)
			if errno == 0 {
				return nil
			}
			return errno
		},
		"write to process 1": func() error { return open("/proc/1/mem", os.O_RDWR) },
		"list its files":     func() error { _, err := os.ReadDir("/proc/1/fd"); return err },
		"enter its root":     func() error { return open("/proc/1/root", os.O_RDONLY) },
		"change the kernel":  func() error { return open("/proc/sys/kernel/core_pattern", os.O_WRONLY) },
		"set the group":      func() error { return open("/sys/fs/cgroup/cgroup.procs", os.O_WRONLY) },
		"kill process 1": func() error {
			_ = syscall.Kill(1, syscall.SIGKILL)
			_ = syscall.Kill(1, syscall.SIGSTOP)
			return os.ErrPermission // whoever reads this is still there
		},
	} {
		if try() == nil {
			did("%s", name)
		}
	}
}

func socket(family, kind, protocol int) func() error {
	return func() error { _, err := syscall.Socket(family, kind, protocol); return err }
}

// filterCalls puts a filter, which allows everything, before its system calls.
func filterCalls() error {
	const setFilter, allow = 1, 0x7fff0000 // SECCOMP_SET_MODE_FILTER, SECCOMP_RET_ALLOW
	number := map[string]uintptr{"amd64": 317, "arm64": 277}[runtime.GOARCH]
	all := []syscall.SockFilter{{Code: syscall.BPF_RET, K: allow}}
	program := syscall.SockFprog{Len: 1, Filter: &all[0]}
	if _, _, errno := syscall.Syscall(number, setFilter, 0, uintptr(unsafe.Pointer(&program))); errno != 0 {
		return errno
	}
	return nil
}

// asked is an error if the kernel was not asked. Whatever else it said, it was.
func asked(err error) error {
	if errors.Is(err, os.ErrPermission) {
		return err
	}
	return nil
}

func option(level, name int) func() error {
	return func() error {
		fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
		if err == nil {
			err = syscall.SetsockoptInt(fd, level, name, 1)
		}
		return asked(err)
	}
}

// control locks a file of this program's, or asks to be told who opens it.
func control(command int, lock *syscall.Flock_t) error {
	fd, err := syscall.Open(filepath.Join(os.TempDir(), "locked"), syscall.O_RDONLY|syscall.O_CREAT, 0o600)
	if err != nil {
		panic(err)
	}
	if _, _, errno := syscall.Syscall(syscall.SYS_FCNTL, uintptr(fd), uintptr(command), uintptr(unsafe.Pointer(lock))); errno != 0 {
		return errno
	}
	return nil
}

// sendControlData has the kernel keep what this program sends to itself, until it is asked for.
func sendControlData() error {
	pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		panic(err)
	}
	return syscall.Sendmsg(pair[0], []byte{1}, syscall.UnixRights(1), nil, 0)
}

func splice() error {
	from, to := make([]int, 2), make([]int, 2)
	if err := errors.Join(syscall.Pipe(from), syscall.Pipe(to)); err != nil {
		panic(err)
	}
	if _, err := syscall.Write(from[1], []byte{1}); err != nil {
		panic(err)
	}
	_, err := syscall.Splice(from[0], nil, to[1], nil, 1, 0)
	return err
}

func open(path string, flag int) error {
	file, err := os.OpenFile(path, flag, 0)
	if err == nil {
		file.Close()
	}
	return err
}

// write fills every folder in which it can make a file.
func write() {
	_ = filepath.WalkDir("/", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return nil //nolint:nilerr // it goes on elsewhere
		case path == "/proc" || path == "/sys":
			return fs.SkipDir
		case entry.IsDir():
			fill(filepath.Join(path, "filler"))
		case entry.Type().IsRegular():
			if open(path, os.O_WRONLY) == nil && !strings.HasPrefix(filepath.Base(path), "filler") {
				did("open %s for writing", path)
			}
		}
		return nil
	})
}

// fill writes files of 16 MB until there is no room.
func fill(name string) {
	chunk, total := make([]byte, 1<<20), 0
	for n := 0; ; n++ {
		file, err := os.Create(fmt.Sprintf("%s-%d", name, n))
		if err != nil {
			break
		}
		for range 16 {
			written, failed := file.Write(chunk)
			total += written
			if err = failed; err != nil {
				break
			}
		}
		file.Close()
		if err != nil {
			break
		}
	}
	if total > 0 {
		fmt.Println("filled", filepath.Dir(name), total>>20)
	}
}
