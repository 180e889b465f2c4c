# shellcheck shell=sh disable=SC2016,SC2086
# Plays the container engine behind `docker exec`: a service of the host that starts programs for others, as its own
# children. A line of /run/matrix/engine is a user id and the environment of one program.
mkdir -p /run/matrix
mkfifo -m 622 /run/matrix/engine
exec 3<>/run/matrix/engine </dev/null >/dev/null 2>&1
while read -r user words <&3; do
  setsid setpriv --reuid "$user" --regid "$user" --clear-groups env -i $words \
    sh -c 'trap "" TERM HUP INT; : >$me.ready; while :; do sleep 1000; done' 3<&- &
done
