# For PowerShell: run this file with a dot in front, in every window that you open today.
$env:WORKSPACE = Join-Path $PSScriptRoot 'workspace'
$env:KUBECONFIG = Join-Path $PSScriptRoot 'kubeconfig'
if (Test-Path -LiteralPath (Join-Path $PSScriptRoot '.lab/board.json')) {
  $env:LAB_BOARD = Join-Path $PSScriptRoot '.lab/board.json'
  $env:CLUSTER = 'room'
}
$env:GOPROXY = 'http://192.168.1.5:7777/modules'
$env:GOSUMDB = 'off'
$env:GOTOOLCHAIN = 'local'
