#compdef @PROGRAM@
function _clap_dynamic_completer_@NAME@() {
    local -a completions open whole
    completions=("${(@f)$( \
        _CLAP_IFS=$'\n' \
        _CLAP_COMPLETE_INDEX=$(( CURRENT - 1 )) \
        @VARIABLE@="zsh" \
        @COMPLETER@ -- "${words[@]}" 2>/dev/null \
    )}")
    [[ -n $completions ]] || return
    local completion value
    for completion in $completions; do
        # A colon of the value is escaped; the first that is not begins its description.
        value=${completion//\\:/.}
        value=${value%%:*}
        case $value in
            (*[=/]) open+=("$completion") ;;
            (*) whole+=("$completion") ;;
        esac
    done
    # More follows a key and a directory: no blank.
    [[ -n $open ]] && _describe -V 'values' open -S ''
    [[ -n $whole ]] && _describe -V 'values' whole
}

compdef _clap_dynamic_completer_@NAME@ @PROGRAM@
