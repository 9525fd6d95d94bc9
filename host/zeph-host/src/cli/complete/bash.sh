_clap_complete_@NAME@() {
    # Between candidates, none of which holds it.
    local IFS=$'\013'
    local text=${COMP_LINE:0:COMP_POINT} words=() piece i
    # Bash cuts words at `=` and `:`: what follows without a blank belongs to the word before.
    for (( i = 0; i <= COMP_CWORD; i++ )); do
        piece=${COMP_WORDS[i]}
        if (( i == 0 )) || [[ $text == [[:space:]]* ]]; then
            words+=("")
            text=${text#"${text%%[![:space:]]*}"}
        fi
        if (( i == COMP_CWORD )) || [[ $text != *"$piece"* ]]; then
            piece=$text
        fi
        words[${#words[@]}-1]+=$piece
        text=${text#*"$piece"}
    done
    local is_quoted=${words[${#words[@]}-1]}
    is_quoted=${is_quoted//[!\'\"]/}
    for i in "${!words[@]}"; do
        words[i]=${words[i]//[\'\"\\]/}
    done
    # Bash puts what is offered in the place of `$2`, which may be the last piece of the word only.
    local before=${words[${#words[@]}-1]} last=${2//[\'\"\\]/}
    before=${before%"$last"}
    if compopt +o nospace 2>/dev/null; then
        local _CLAP_COMPLETE_SPACE=false
    else
        local _CLAP_COMPLETE_SPACE=true
    fi
    COMPREPLY=()
    read -r -d '' -a COMPREPLY < <(
        _CLAP_IFS="$IFS" \
        _CLAP_COMPLETE_INDEX="$(( ${#words[@]} - 1 ))" \
        _CLAP_COMPLETE_COMP_TYPE="$COMP_TYPE" \
        _CLAP_COMPLETE_SPACE="$_CLAP_COMPLETE_SPACE" \
        @VARIABLE@="bash" \
        "@COMPLETER@" -- "${words[@]}"
    )
    for i in "${!COMPREPLY[@]}"; do
        COMPREPLY[i]=${COMPREPLY[i]#"$before"}
        if [[ -z $is_quoted && ${COMPREPLY[i]} == *[[:space:]]* ]]; then
            printf -v piece '%q' "${COMPREPLY[i]}"
            COMPREPLY[i]=$piece
        fi
    done
    if [[ $_CLAP_COMPLETE_SPACE == false ]] && [[ "${COMPREPLY-}" =~ [=/:]$ ]]; then
        compopt -o nospace
    fi
}
if [[ "${BASH_VERSINFO[0]}" -eq 4 && "${BASH_VERSINFO[1]}" -ge 4 || "${BASH_VERSINFO[0]}" -gt 4 ]]; then
    complete -o nospace -o bashdefault -o nosort -F _clap_complete_@NAME@ @PROGRAM@
else
    complete -o nospace -o bashdefault -F _clap_complete_@NAME@ @PROGRAM@
fi
