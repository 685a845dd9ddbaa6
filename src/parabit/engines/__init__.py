"""The same work elsewhere: encoding on a Ray cluster, and indexes that Milvus keeps."""
