package console

import "strings"

var createGroup = action{
	path: base + "hubs/{hub}/new-group", calls: []string{"POST /api/v1/hubs/{hub}/groups"},
	sheet: func(v *visit) (*sheet, error) {
		hub, name := v.name("hub"), v.value("name", "")
		return &sheet{
			Title: "Create a group of " + hub, About: "A group reads the whole hub at its own pace. Its instances share the partitions.", Back: at("hubs", hub, "groups"),
			Fields:  []field{{Name: "name", Label: "Name", Kind: "text", Value: name, Placeholder: "billing"}},
			Buttons: []button{{"Create", "main", act}}, Command: command("group", "create", hub, orWord(name, "NAME")),
		}, nil
	},
	do: func(v *visit) (outcome, error) {
		g, err := v.api.CreateGroup(v.ctx, v.name("hub"), strings.TrimSpace(v.r.PostFormValue("name")))
		return outcome{to: at("hubs", v.name("hub"), "groups", g.Name), done: "created"}, err
	},
}

var deleteGroup = action{
	path: base + "hubs/{hub}/groups/{group}/delete", calls: []string{"DELETE /api/v1/hubs/{hub}/groups/{group}"},
	sheet: func(v *visit) (*sheet, error) {
		hub, group := v.name("hub"), v.name("group")
		return deletion("group", group, "Its leases and checkpoints are deleted with it, and its readers are disconnected. The events stay. This cannot be undone.",
			at("hubs", hub, "groups", group), command("group", "delete", hub, group)), nil
	},
	do: func(v *visit) (outcome, error) {
		if err := v.typed(v.name("group")); err != nil {
			return outcome{}, err
		}
		return outcome{to: at("hubs", v.name("hub"), "groups"), done: "deleted"}, v.api.DeleteGroup(v.ctx, v.name("hub"), v.name("group"))
	},
}

var releasePartition = action{
	path:  base + "hubs/{hub}/groups/{group}/release/{partition}",
	calls: []string{"DELETE /api/v1/hubs/{hub}/groups/{group}/ownership/{partition}"},
	sheet: func(v *visit) (*sheet, error) {
		hub, group, partition := v.name("hub"), v.name("group"), v.name("partition")
		return &sheet{
			Title: "Release partition " + partition, About: "The lease of its owner ends, and its reader is disconnected. Another instance takes the partition over, or the same one again, and continues from the checkpoint: some events may be handled twice.",
			Back: at("hubs", hub, "groups", group), Buttons: []button{{"Release", "danger", act}}, Command: command("group", "release", hub, group, partition),
		}, nil
	},
	do: func(v *visit) (outcome, error) {
		_, err := v.api.ReleasePartition(v.ctx, v.name("hub"), v.name("group"), v.name("partition"))
		return outcome{to: at("hubs", v.name("hub"), "groups", v.name("group")), done: "release"}, err
	},
}

// forgetInstance removes what a dead instance has said of itself. The yard refuses to forget one that is alive.
var forgetInstance = action{
	path:  base + "hubs/{hub}/groups/{group}/forget/{instance}",
	calls: []string{"DELETE /api/v1/hubs/{hub}/groups/{group}/instances/{instance}"},
	sheet: func(v *visit) (*sheet, error) {
		hub, group, instance := v.name("hub"), v.name("group"), v.name("instance")
		return &sheet{
			Title: "Forget instance " + instance, About: "It is dead, and is shown no more. Partitions that it owned stay in its name until another instance takes them: release them to give them up at once. One that comes back shows itself again.",
			Back: at("hubs", hub, "groups", group), Buttons: []button{{"Forget", "danger", act}}, Command: command("group", "forget", hub, group, instance),
		}, nil
	},
	do: func(v *visit) (outcome, error) {
		return outcome{to: at("hubs", v.name("hub"), "groups", v.name("group")), done: "forgotten"}, v.api.ForgetInstance(v.ctx, v.name("hub"), v.name("group"), v.name("instance"))
	},
}

func forgetPath(hub, group, instance string) string {
	return at("hubs", hub, "groups", group, "forget", instance)
}
