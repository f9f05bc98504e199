# For bash and zsh: source this file in every terminal that you open today.
lab_handout="$(CDPATH= cd -- "$(dirname -- "${BASH_SOURCE:-$0}")" && pwd)"
export WORKSPACE="$lab_handout/workspace"
unset lab_handout
