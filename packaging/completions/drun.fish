# Completion of drun for fish. drun itself answers: `drun __complete WORD...`.
function __drun_complete
    set -l tokens (commandline -opc)
    set -l current (commandline -ct)
    set -l program $tokens[1]
    command -q -- $program; or set program drun
    set -l out ($program __complete $tokens[2..-1] "$current" 2>/dev/null)
    test (count $out) -ge 3; or return
    set -l kind $out[1]
    set -l kept $out[2]
    set -l begin (math $out[3] + 2) # the command's place in tokens
    for line in $out[4..-1]
        printf '%s%s\n' $kept $line
    end
    set -l rest (string sub --start (math (string length -- "$kept") + 1) -- "$current")
    switch $kind
        case files
            for line in (__fish_complete_path "$rest")
                printf '%s%s\n' $kept $line
            end
        case directories
            for line in (__fish_complete_directories "$rest")
                printf '%s%s\n' $kept $line
            end
        case command
            set -l words
            test $begin -le (count $tokens); and set words (string escape -- $tokens[$begin..-1])
            complete -C (string join ' ' -- $words "$current")
    end
end
complete -c drun -f -a '(__drun_complete)'
