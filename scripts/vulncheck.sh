#!/usr/bin/env bash
# Known vulnerabilities of the modules in our programs and in a node; make vulncheck runs it.
set -euo pipefail
cd "$(dirname "$0")/.."
go -C scripts/tools build -o ../../bin/govulncheck golang.org/x/vuln/cmd/govulncheck
tmp=$(mktemp -d) status=0
trap 'rm -r "$tmp"' EXIT
for file in $(git ls-files '*go.mod' | grep -Ev '^(scripts|labs)/'); do
	echo "== $file"
	bin/govulncheck -C "$(dirname "$file")" ./... || status=$?
done
for sum in clusters/components/modules/*.sum; do
	echo "== $sum"
	cp "$sum" "$tmp/go.sum" && cp "${sum%sum}mod" "$tmp/go.mod"
	bin/govulncheck -C "$tmp" -scan package tool || status=$?
done
exit "$status"
