# What a piece of a line stands for, in `value`, and in `quote` the quote that is open at its end. Fails where an expansion decides that.
_clap_unquote_@NAME@() {
    local rest=$1 plain next
    value='' quote=''
    while [[ -n $rest ]]; do
        case $quote in
            \') plain=${rest%%\'*} ;;
            \") plain=${rest%%[\"\\]*} ;;
            *) plain=${rest%%[\'\"\\]*} ;;
        esac
        [[ $quote != \' && $plain == *[\$\`]* ]] && return 1
        value+=$plain
        rest=${rest:${#plain}}
        next=${rest:0:1}
        rest=${rest:1}
        case $next in
            '') ;;
            \\)
                # What it escapes is not typed yet.
                if [[ -z $rest ]]; then
                    [[ -n $quote ]] || quote=$next
                    return
                fi
                [[ $quote == \" && $rest != [\$\`\"\\]* ]] && value+=$next
                value+=${rest:0:1}
                rest=${rest:1}
                ;;
            "$quote") quote='' ;;
            *) quote=$next ;;
        esac
    done
}
_clap_complete_@NAME@() {
    # Between candidates, none of which holds it.
    local IFS=$'\013'
    local text=${COMP_LINE:0:COMP_POINT} words=() piece i value quote
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
    COMPREPLY=()
    for i in "${!words[@]}"; do
        _clap_unquote_@NAME@ "${words[i]}" || (( i + 1 < ${#words[@]} )) || return 0
        words[i]=$value
    done
    local is_spaced=true
    if compopt +o nospace 2>/dev/null; then
        is_spaced=false
    fi
    local candidates=()
    read -r -d '' -a candidates < <(@VARIABLE@="bash" "@COMPLETER@" -- "${words[@]}")
    # Bash puts what is offered in the place of `$2`, the last piece as it was typed, and does not quote it.
    for piece in ${candidates[@]+"${candidates[@]}"}; do
        [[ $piece == "$value"* ]] || continue
        piece=${piece:${#value}}
        case $quote in
            \') [[ $piece == *\'* ]] && continue ;;
            \") [[ $piece == *[\$\`\"\\!]* ]] && continue ;;
            *) [[ -n $piece ]] && printf -v piece '%q' "$piece" ;;
        esac
        [[ $quote == \\ ]] && piece=${2%\\}$piece || piece=$2$piece
        [[ $piece == "$2"* ]] && COMPREPLY+=("$piece")
    done
    if [[ $is_spaced == false ]] && [[ "${COMPREPLY-}" =~ [=/:]$ ]]; then
        compopt -o nospace
    fi
}
if [[ "${BASH_VERSINFO[0]}" -eq 4 && "${BASH_VERSINFO[1]}" -ge 4 || "${BASH_VERSINFO[0]}" -gt 4 ]]; then
    complete -o nospace -o bashdefault -o nosort -F _clap_complete_@NAME@ @PROGRAM@
else
    complete -o nospace -o bashdefault -F _clap_complete_@NAME@ @PROGRAM@
fi
