package main

const rootHelp = `Eventyard is an event broker in one program: hubs with partitions and consumer
groups, and topics that push events to webhooks, kept durably in one folder. Run it,
and talk to it with the same program.

A first minute:

  eventyard serve                                 keeps everything in ./eventyard-data

  eventyard hub create orders --partitions 4      in another shell
  eventyard send orders "hello" "world"
  eventyard read orders --from earliest
  eventyard read orders --from latest --follow    and send some more meanwhile

  eventyard listen 127.0.0.1:9000                 in a third: a webhook that prints what it receives
  eventyard topic create shop
  eventyard subscription create billing --topic shop --endpoint http://127.0.0.1:9000/
  eventyard topic publish shop '{"total":42}' --type order.placed

  eventyard function create mail --hub orders --endpoint http://127.0.0.1:9000/

Stop the yard, or pull the plug, and start it again: every event that was
acknowledged is still there.

Programs use the official Azure Event Hubs clients, in any language, with the
connection string that serve prints, or one for a hub; and those of Event Grid with
the endpoint and key of a topic:

  eventyard connection-string --hub orders
  eventyard topic show shop

For other machines a yard has TLS and a key of its own, which is in the file
DATA/connection-string:

  eventyard serve --amqps :5671 --https :8443 --host yard.example.com
  eventyard cert export eventyard-ca.pem                   for its clients to trust

  export EVENTYARD_SERVER=https://yard.example.com:8443    on one of those machines
  export EVENTYARD_CA=eventyard-ca.pem
  export EVENTYARD_CONNECTION_STRING=@FILE                 with a copy of that file
  eventyard hub list`

// usageTemplate is cobra's, with the flags wrapped to a readable width and without
// the lines that say what is said already.
const usageTemplate = `Usage:
{{- if and .Runnable (not .HasAvailableSubCommands)}}
  {{.UseLine}}
{{- end}}
{{- if .HasAvailableSubCommands}}
  {{.CommandPath}} COMMAND
{{- end}}
{{- if .HasExample}}

Examples:
{{.Example}}
{{- end}}
{{- if .HasAvailableSubCommands}}
{{- $all := .Commands}}
{{- range $group := .Groups}}

{{$group.Title}}
{{- range $all}}
{{- if and (eq .GroupID $group.ID) (or .IsAvailableCommand (eq .Name "help"))}}
  {{rpad .Name .NamePadding}}  {{.Short}}
{{- end}}
{{- end}}
{{- end}}
{{- if not .Groups}}

Commands:
{{- range $all}}
{{- if .IsAvailableCommand}}
  {{rpad .Name .NamePadding}}  {{.Short}}
{{- end}}
{{- end}}
{{- end}}
{{- end}}
{{- if .HasAvailableLocalFlags}}

Flags:
{{.LocalFlags.FlagUsagesWrapped 100 | trimTrailingWhitespaces}}
{{- end}}
{{- if .HasAvailableSubCommands}}

{{.CommandPath}} COMMAND --help shows more about a command.
{{- end}}
`
