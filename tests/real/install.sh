#!/bin/sh
# Installs the real agent CLIs into a cache folder, once: tests/real/install.sh claude …
# Prints nothing but npm's own words; a CLI that is there already costs nothing.
set -eu
cache=${FORKHESTRA_REAL:-${XDG_CACHE_HOME:-$HOME/.cache}/forkhestra-real}
package() {
    case $1 in
        claude) echo @anthropic-ai/claude-code ;;
        *) echo "unknown agent CLI: $1" >&2; exit 2 ;;
    esac
}
for name in "$@"; do
    if [ ! -x "$cache/$name/node_modules/.bin/$name" ]; then
        mkdir -p "$cache/$name"
        npm install --silent --no-audit --no-fund --prefix "$cache/$name" "$(package "$name")"
    fi
    "$cache/$name/node_modules/.bin/$name" --version
done
