package goproxy

// Env is what a learner's Go command has to be told, as variables of its environment. url is where the proxy answers;
// key is that of the room's checksum database, see [Key]; "" leaves the Go command its own.
//
//   - GOPROXY: modules come from the room alone, so that nothing waits for a Wi-Fi that is not there.
//   - GOSUMDB: what go.sum does not vouch for, the room does. "off" would do for the labs, whose go.sum is complete,
//     but not for toolchains, and what somebody adds would be verified by nobody, over a connection without encryption.
//   - GOTOOLCHAIN: some distributions turn off what replaces a Go that is too old.
func Env(url, key string) []string {
	env := []string{"GOPROXY=" + url}
	if key != "" {
		env = append(env, "GOSUMDB="+key)
	}
	return append(env, "GOTOOLCHAIN=auto")
}
