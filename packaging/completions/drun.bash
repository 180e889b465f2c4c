# Completion of drun for bash 4.3 and later. drun itself answers: `drun __complete WORD...`.
_drun() {
  local line=${COMP_LINE:0:COMP_POINT} words=() starts=() i word
  # bash also splits at "=", ":" and "@" (COMP_WORDBREAKS): joins what has no blank between.
  for ((i = 0; i <= COMP_CWORD; i++)); do
    word=${COMP_WORDS[i]}
    if ((i == 0)) || [[ $line == [[:space:]]* ]]; then
      line=${line#"${line%%[![:space:]]*}"}
      words+=("")
      starts+=("$i")
    fi
    ((i == COMP_CWORD)) && word=$line  # up to the cursor
    words[-1]+=$word
    line=${line#"$word"}
  done

  local out=() program=${words[0]/#"~/"/"$HOME/"}
  mapfile -t out < <("$program" __complete "${words[@]:1}" 2>/dev/null)
  COMPREPLY=()
  ((${#out[@]} >= 3)) || return 0
  local kind=${out[0]} kept=${out[1]} at=${out[2]} current=${words[-1]}
  local rest=${current:${#kept}} tab=$'\t'
  for line in "${out[@]:3}"; do COMPREPLY+=("$kept${line%%"$tab"*}"); done
  case $kind in
    list) compopt -o nospace 2>/dev/null ;;
    files | directories)
      compopt -o filenames 2>/dev/null
      [[ $kind == files ]] && kind=file || kind=directory
      while IFS= read -r word; do COMPREPLY+=("$kept$word"); done < <(compgen -A "$kind" -- "$rest")
      ;;
    command)
      if ((at + 2 < ${#words[@]})); then
        if declare -F _command_offset >/dev/null; then
          _command_offset "${starts[at + 1]}"
        else
          compopt -o filenames 2>/dev/null
          mapfile -t COMPREPLY < <(compgen -A file -- "$current")
        fi
        return 0
      fi
      [[ $current == */* ]] && compopt -o filenames 2>/dev/null
      while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -A command -- "$current")
      ;;
  esac
  # Readline replaces only what follows the last of these characters.
  local breaks='' character head
  for character in = : @; do
    [[ $COMP_WORDBREAKS == *"$character"* ]] && breaks+=$character
  done
  if [[ $breaks ]]; then
    head=${current%"${current##*[$breaks]}"}
    head=${head%@}  # the "@" itself it replaces, too
    COMPREPLY=("${COMPREPLY[@]#"$head"}")
  fi
}
complete -F _drun drun
