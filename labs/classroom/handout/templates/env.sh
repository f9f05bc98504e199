# For bash and zsh: source this file in every terminal that you open today.
lab_handout="$(CDPATH= cd -- "$(dirname -- "${BASH_SOURCE:-$0}")" && pwd)"
export WORKSPACE="$lab_handout/workspace"
{{- if .Kubeconfig}}
export KUBECONFIG="$lab_handout/kubeconfig"
{{- end}}
{{- if .Board}}
if [ -f "$lab_handout/.lab/board.json" ]; then
  export LAB_BOARD="$lab_handout/.lab/board.json"
{{- if .Lends}}
  export CLUSTER=room
{{- end}}
fi
{{- end}}
{{- range .Set}}
export {{.Name}}={{shell .Value}}
{{- end}}
unset lab_handout
