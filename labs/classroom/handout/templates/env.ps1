# For PowerShell: run this file with a dot in front, in every window that you open today.
$env:WORKSPACE = Join-Path $PSScriptRoot 'workspace'
{{- if .Kubeconfig}}
$env:KUBECONFIG = Join-Path $PSScriptRoot 'kubeconfig'
{{- end}}
{{- if .Board}}
if (Test-Path -LiteralPath (Join-Path $PSScriptRoot '.lab/board.json')) {
  $env:LAB_BOARD = Join-Path $PSScriptRoot '.lab/board.json'
{{- if .Lends}}
  $env:CLUSTER = 'room'
{{- end}}
}
{{- end}}
{{- range .Set}}
$env:{{.Name}} = {{powershell .Value}}
{{- end}}
