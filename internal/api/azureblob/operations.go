package azureblob

import "net/http"

// selector is how a request names what it wants.
type selector struct {
	level                 level
	method, restype, comp string
}

// operation is one call of the API.
type operation struct {
	name string
	need need
	// serve answers, or says why not.
	serve func(*call) error
}

// need is what a shared-access signature has to have.
type need struct {
	// any one of these permissions
	permissions string
	// owner: no signature for a container or blob will do, only one for the account.
	owner bool
}

// What signatures are asked for.
var (
	toRead   = need{permissions: "r"}
	toWrite  = need{permissions: "w"}
	toPut    = need{permissions: "wc"} // c alone may not overwrite
	toDelete = need{permissions: "d"}
	toLease  = need{permissions: "wd"} // d for a break
	toList   = need{permissions: "l"}

	toReadContainer   = need{permissions: "r", owner: true}
	toWriteContainer  = need{permissions: "w", owner: true}
	toMakeContainer   = need{permissions: "wc", owner: true}
	toDeleteContainer = need{permissions: "d", owner: true}
	toListContainers  = need{permissions: "l", owner: true}
)

// operations is the whole listener.
func operations() map[selector]operation {
	const get, head, put, del, post = http.MethodGet, http.MethodHead, http.MethodPut, http.MethodDelete, http.MethodPost
	table := map[selector]operation{
		{atService, get, "", "list"}:              {"ListContainers", toListContainers, (*call).listContainers},
		{atService, get, "service", "properties"}: {"GetServiceProperties", toReadContainer, (*call).serviceProperties},
		{atService, put, "service", "properties"}: {"SetServiceProperties", toWriteContainer, unoffered("to set properties of the service")},
		{atService, get, "service", "stats"}:      {"GetServiceStats", toReadContainer, unoffered("a second region")},
		{atService, post, "service", "userdelegationkey"}: {"GetUserDelegationKey", toReadContainer,
			unoffered("a signature by a user delegation key")},
		{atService, post, "", "batch"}: {"SubmitBatch", toWriteContainer, unoffered("a batch of requests")},
		{atService, get, "", "blobs"}:  {"FindBlobsByTags", toReadContainer, unoffered("to find blobs by tags")},

		{atContainer, put, "container", ""}:         {"CreateContainer", toMakeContainer, (*call).createContainer},
		{atContainer, get, "container", ""}:         {"GetContainerProperties", toReadContainer, (*call).containerProperties},
		{atContainer, head, "container", ""}:        {"GetContainerProperties", toReadContainer, (*call).containerProperties},
		{atContainer, get, "container", "metadata"}: {"GetContainerProperties", toReadContainer, (*call).containerProperties},
		{atContainer, head, "container", "metadata"}: {"GetContainerProperties", toReadContainer,
			(*call).containerProperties},
		{atContainer, put, "container", "metadata"}: {"SetContainerMetadata", toWriteContainer, (*call).setContainerMetadata},
		{atContainer, del, "container", ""}:         {"DeleteContainer", toDeleteContainer, (*call).deleteContainer},
		{atContainer, put, "container", "lease"}:    {"LeaseContainer", toWriteContainer, (*call).leaseContainer},
		{atContainer, get, "container", "list"}:     {"ListBlobs", toList, (*call).listBlobs},
		{atContainer, get, "container", "acl"}:      {"GetContainerACL", toReadContainer, (*call).containerACL},
		{atContainer, head, "container", "acl"}:     {"GetContainerACL", toReadContainer, (*call).containerACL},
		{atContainer, put, "container", "acl"}:      {"SetContainerACL", toWriteContainer, unoffered("a stored access policy or public access")},
		{atContainer, put, "container", "undelete"}: {"RestoreContainer", toWriteContainer, unoffered("to restore what was deleted")},

		{atBlob, put, "", ""}:           {"PutBlob", toPut, (*call).putBlob},
		{atBlob, get, "", ""}:           {"GetBlob", toRead, (*call).getBlob},
		{atBlob, head, "", ""}:          {"GetBlobProperties", toRead, (*call).blobProperties},
		{atBlob, del, "", ""}:           {"DeleteBlob", toDelete, (*call).deleteBlob},
		{atBlob, put, "", "metadata"}:   {"SetBlobMetadata", toWrite, (*call).setMetadata},
		{atBlob, get, "", "metadata"}:   {"GetBlobMetadata", toRead, (*call).blobMetadata},
		{atBlob, head, "", "metadata"}:  {"GetBlobMetadata", toRead, (*call).blobMetadata},
		{atBlob, put, "", "properties"}: {"SetBlobProperties", toWrite, (*call).setProperties},
		{atBlob, put, "", "lease"}:      {"LeaseBlob", toLease, (*call).leaseBlob},
		{atBlob, put, "", "block"}:      {"PutBlock", toPut, (*call).putBlock},
		{atBlob, put, "", "blocklist"}:  {"PutBlockList", toPut, (*call).putBlockList},
		{atBlob, get, "", "blocklist"}:  {"GetBlockList", toRead, (*call).getBlockList},

		{atBlob, put, "", "appendblock"}: {"AppendBlock", toWrite, (*call).wrongBlobType},
		{atBlob, put, "", "page"}:        {"PutPage", toWrite, (*call).wrongBlobType},
		{atBlob, get, "", "pagelist"}:    {"GetPageRanges", toRead, (*call).wrongBlobType},
	}
	for _, comp := range []string{"snapshot", "undelete", "tier", "tags", "copy", "incrementalcopy", "seal", "expiry", "immutabilityPolicies", "legalhold"} {
		table[selector{atBlob, put, "", comp}] = operation{"NotOffered", toWrite, unoffered("comp=" + comp)}
	}
	table[selector{atBlob, get, "", "tags"}] = operation{"NotOffered", toRead, unoffered("comp=tags")}
	table[selector{atBlob, post, "", "query"}] = operation{"NotOffered", toRead, unoffered("comp=query")}
	for _, at := range []level{atService, atContainer, atBlob} {
		for _, method := range []string{get, head} {
			table[selector{at, method, "account", "properties"}] = operation{"GetAccountInformation", toRead, (*call).accountInformation}
		}
	}
	return table
}

func unoffered(what string) func(*call) error {
	return func(*call) error { return notOffered(what) }
}

// find gives the operation of a request.
func (d *Handler) find(c *call) (operation, error) {
	want := selector{c.level, c.r.Method, c.query.Get("restype"), c.query.Get("comp")}
	if op, ok := d.operations[want]; ok {
		return op, nil
	}
	for known := range d.operations {
		if known.level == want.level && known.restype == want.restype && known.comp == want.comp {
			return operation{}, refusal(http.StatusMethodNotAllowed, "UnsupportedHttpVerb", c.r.Method+" is no method of this resource")
		}
	}
	if want.comp != "" {
		return operation{}, invalidQuery("comp", want.comp)
	}
	return operation{}, refusal(http.StatusBadRequest, "InvalidUri", "nothing is known to do by this request; what a container is asked needs restype=container")
}
