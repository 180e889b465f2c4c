# shellcheck shell=sh disable=SC2016
# One worker of the matrix (see matrix.py); drun runs it as `sh -c TEXT`. MATRIX_COLUMN is its kind, or "all": then the
# local rank selects the kind. Each expected process writes /tmp/matrix.CELL.RANK.NAME when it is up; .top has the pid
# of the worker itself. The rank MATRIX_EXITS exits with 3 after a write to /tmp/matrix.CELL.RANK.go.
me=/tmp/matrix.$MATRIX_CELL.$RANK
column=$MATRIX_COLUMN
if [ "$column" = all ]; then
  set -- plain ignores-term child setsid-child daemon script wrapper
  shift "$LOCAL_RANK"
  column=$1
fi
export me
stubborn='trap "" TERM HUP INT; : >$me.ready; while :; do sleep 1000; done'

live() {
  if [ "$MATRIX_EXITS" = "$RANK" ]; then
    read -r _ <"$me.go"
    exit 3
  fi
  if [ -n "$MATRIX_TALKS" ] && [ "$column" = plain ]; then
    while echo tick; do sleep 0.1; done
    exit 0
  fi
  while :; do sleep 1000; done
}

[ "$MATRIX_EXITS" = "$RANK" ] && mkfifo "$me.go"
echo $$ >"$me.top"
case $column in
  plain)
    : >"$me.ready"
    [ "$MATRIX_EXITS" = "$RANK" ] || [ -n "$MATRIX_TALKS" ] || exec sleep 1000
    live
    ;;
  ignores-term)
    trap '' TERM
    : >"$me.ready"
    live
    ;;
  child)
    sleep 1000 &
    : >"$me.ready"
    live
    ;;
  setsid-child)
    setsid sh -c "$stubborn" &
    live
    ;;
  daemon)
    (setsid sh -c "$stubborn" </dev/null >/dev/null 2>&1 &)
    live
    ;;
  script) # the real program is a child of a shell, which does not exec it
    if [ "$MATRIX_EXITS" = "$RANK" ]; then
      sh -c ': >$me.ready; read -r _ <$me.go; exit 3'
    else
      sh -c ': >$me.ready; sleep 1000; true'
    fi
    exit $?
    ;;
  wrapper) # like `docker exec`: the program is the child of a service of the host, with the given environment
    echo "$(id -u) me=$me DRUN_JOB_ID=$DRUN_JOB_ID DRUN_AGENT=$DRUN_AGENT" >/run/matrix/engine
    live
    ;;
esac
