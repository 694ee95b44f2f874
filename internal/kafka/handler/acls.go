package handler

import "github.com/twmb/franz-go/pkg/kmsg"

// Rights belong to policies, and are changed by the yard's own tools. Kafka's tools know servers without
// access control lists, and say so instead of failing.

// codeNoLists: there are no access control lists.
const codeNoLists int16 = 54

const noLists = "there are no ACLs: rights belong to policies, see eventyard policy"

// describeACLs, createACLs and deleteACLs say that there are none.
//
// DescribeAcls (29), CreateAcls (30) and DeleteAcls (31), versions 1 to 3.
func (p *peer) describeACLs(*kmsg.DescribeACLsRequest) kmsg.Response {
	answer := kmsg.NewPtrDescribeACLsResponse()
	answer.ErrorCode, answer.ErrorMessage = codeNoLists, kmsg.StringPtr(noLists)
	return answer
}

func (p *peer) createACLs(r *kmsg.CreateACLsRequest) kmsg.Response {
	answer := kmsg.NewPtrCreateACLsResponse()
	for range r.Creations {
		one := kmsg.NewCreateACLsResponseResult()
		one.ErrorCode, one.ErrorMessage = codeNoLists, kmsg.StringPtr(noLists)
		answer.Results = append(answer.Results, one)
	}
	return answer
}

func (p *peer) deleteACLs(r *kmsg.DeleteACLsRequest) kmsg.Response {
	answer := kmsg.NewPtrDeleteACLsResponse()
	for range r.Filters {
		one := kmsg.NewDeleteACLsResponseResult()
		one.ErrorCode, one.ErrorMessage = codeNoLists, kmsg.StringPtr(noLists)
		answer.Results = append(answer.Results, one)
	}
	return answer
}
