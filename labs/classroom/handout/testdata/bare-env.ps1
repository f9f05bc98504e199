# For PowerShell: run this file with a dot in front, in every window that you open today.
$env:WORKSPACE = Join-Path $PSScriptRoot 'workspace'
