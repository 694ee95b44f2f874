package azureblob

import (
	"net/http"
	"net/url"

	"github.com/eventyard/eventyard/internal/api/frame"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/hubs/blob"
)

// selector is how a request names what it wants.
type selector struct {
	level                 level
	method, restype, comp string
}

// routeOf is what the frame knows of an operation, which is asked for by what the path names and by
// two words of the query.
func routeOf(at selector, op operation) frame.Route {
	path := map[level]string{
		atService: Prefix + "{account}", atContainer: Prefix + "{account}/{container}", atBlob: Prefix + "{account}/{container}/{blob}",
	}[at.level]
	query := url.Values{}
	if at.restype != "" {
		query.Set("restype", at.restype)
	}
	if at.comp != "" {
		query.Set("comp", at.comp)
	}
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	rt := frame.Route{Method: at.method, Path: path, Name: op.name, Need: op.need}
	if at.method == http.MethodPut {
		rt.MaxBody, rt.Streams = blob.MaxPutBytes, true
	}
	return rt
}

// operation is one call of the API.
type operation struct {
	name string
	need frame.Need
	// serve answers, or says why not.
	serve func(*call) error
}

// signed is the need of who manages the namespace, or shows a shared-access signature with any one
// of these permissions; of an account's, where a container is no longer enough.
func signed(permissions string, account bool) frame.Need {
	return frame.Need{Reach: frame.Namespace, OneOf: []auth.Rights{auth.Manage}, Permissions: permissions, Account: account}
}

// What operations need.
var (
	toRead   = signed("r", false)
	toWrite  = signed("w", false)
	toPut    = signed("wc", false) // c alone may not overwrite
	toDelete = signed("d", false)
	toLease  = signed("wd", false) // d for a break
	toList   = signed("l", false)

	toReadContainer   = signed("r", true)
	toWriteContainer  = signed("w", true)
	toMakeContainer   = signed("wc", true)
	toDeleteContainer = signed("d", true)
	toListContainers  = signed("l", true)
)

// operations is the whole listener.
func operations() map[selector]operation {
	const get, head, put, del, post = http.MethodGet, http.MethodHead, http.MethodPut, http.MethodDelete, http.MethodPost
	table := map[selector]operation{
		{atService, get, "", "list"}:                      {"ListContainers", toListContainers, (*call).listContainers},
		{atService, get, "service", "properties"}:         {"GetServiceProperties", toReadContainer, (*call).serviceProperties},
		{atService, put, "service", "properties"}:         {"SetServiceProperties", toWriteContainer, unoffered("to set properties of the service")},
		{atService, get, "service", "stats"}:              {"GetServiceStats", toReadContainer, unoffered("a second region")},
		{atService, post, "service", "userdelegationkey"}: {"GetUserDelegationKey", toReadContainer, unoffered("a signature by a user delegation key")},
		{atService, post, "", "batch"}:                    {"SubmitBatch", toWriteContainer, unoffered("a batch of requests")},
		{atService, get, "", "blobs"}:                     {"FindBlobsByTags", toReadContainer, unoffered("to find blobs by tags")},

		{atContainer, put, "container", ""}:          {"CreateContainer", toMakeContainer, (*call).createContainer},
		{atContainer, get, "container", ""}:          {"GetContainerProperties", toReadContainer, (*call).containerProperties},
		{atContainer, head, "container", ""}:         {"GetContainerProperties", toReadContainer, (*call).containerProperties},
		{atContainer, get, "container", "metadata"}:  {"GetContainerProperties", toReadContainer, (*call).containerProperties},
		{atContainer, head, "container", "metadata"}: {"GetContainerProperties", toReadContainer, (*call).containerProperties},
		{atContainer, put, "container", "metadata"}:  {"SetContainerMetadata", toWriteContainer, (*call).setContainerMetadata},
		{atContainer, del, "container", ""}:          {"DeleteContainer", toDeleteContainer, (*call).deleteContainer},
		{atContainer, put, "container", "lease"}:     {"LeaseContainer", toWriteContainer, (*call).leaseContainer},
		{atContainer, get, "container", "list"}:      {"ListBlobs", toList, (*call).listBlobs},
		{atContainer, get, "container", "acl"}:       {"GetContainerACL", toReadContainer, (*call).containerACL},
		{atContainer, head, "container", "acl"}:      {"GetContainerACL", toReadContainer, (*call).containerACL},
		{atContainer, put, "container", "acl"}:       {"SetContainerACL", toWriteContainer, unoffered("a stored access policy or public access")},
		{atContainer, put, "container", "undelete"}:  {"RestoreContainer", toWriteContainer, unoffered("to restore what was deleted")},

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

// Find reads the path and the query, and looks for the operation.
func (c *call) Find() error {
	if err := c.locate(); err != nil {
		return err
	}
	want := selector{c.level, c.R.Method, c.query.Get("restype"), c.query.Get("comp")}
	if op, ok := c.handler.operations[want]; ok {
		c.operation, c.Route = op, c.handler.routes[want]
		return nil
	}
	for known := range c.handler.operations {
		if known.level == want.level && known.restype == want.restype && known.comp == want.comp {
			return refusal(http.StatusMethodNotAllowed, "UnsupportedHttpVerb", c.R.Method+" is no method of this resource")
		}
	}
	if want.comp != "" {
		return invalidQuery("comp", want.comp)
	}
	return refusal(http.StatusBadRequest, "InvalidUri", "nothing is known to do by this request; what a container is asked needs restype=container")
}
