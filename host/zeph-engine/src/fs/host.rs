//! The border: `wasi:filesystem` in terms of the guard. Every method is here and none decides anything; each fetches its
//! handles, calls one operation, and turns the outcome into what the guest may see.

use std::os::fd::AsFd;
use std::sync::Arc;

use rustix::fs::Timestamps;
use wasmtime::component::Resource;
use wasmtime_wasi::p2::bindings::filesystem::preopens;
use wasmtime_wasi::p2::bindings::filesystem::types::ErrorCode as StockErrorCode;
use wasmtime_wasi::p2::bindings::sync::filesystem::types::{
    self, Advice, Descriptor, DescriptorFlags, DescriptorStat, DescriptorType, DirectoryEntry,
    DirectoryEntryStream, Filesize, MetadataHashValue, NewTimestamp, OpenFlags, PathFlags,
};
use wasmtime_wasi::p2::{DynInputStream, DynOutputStream, FsError, FsResult};
use zeph_core::capability::FsRights;

use super::error::{Code, Fail, FsOutcome};
use super::handle::{self, DirHandle, FileHandle, Handle};
use super::listing::EntryStream;
use super::open::OpenRequest;
use super::refusal::WRITE;
use super::stat::{to_hash, to_stat, to_times};
use super::streams::{FileInput, FileOutput, OutputTarget};
use super::sys::{self, Meta};
use super::{FsCtxView, file};

impl FsCtxView<'_> {
    /// Does one operation and tells the guest what came of it.
    fn run<T>(&mut self, operation: impl FnOnce(&mut Self) -> FsOutcome<T>) -> FsResult<T> {
        let outcome = operation(self);
        self.ctx.tell(outcome)
    }

    /// Does one operation that changes something, or fails at what it finds in its place.
    fn change<T>(&mut self, operation: impl FnOnce(&mut Self) -> FsOutcome<T>) -> FsResult<T> {
        self.ctx.touched.spoil();
        self.run(operation)
    }

    fn dir(&self, descriptor: &Resource<Descriptor>) -> FsOutcome<DirHandle> {
        Ok(handle::get(self.table, descriptor)?.dir()?.clone())
    }

    fn file(&self, descriptor: &Resource<Descriptor>) -> FsOutcome<&FileHandle> {
        Ok(handle::get(self.table, descriptor)?.file()?)
    }

    /// The metadata of an open object, if the guest may have it.
    fn meta(&mut self, descriptor: &Resource<Descriptor>) -> FsOutcome<Meta> {
        match handle::get(self.table, descriptor)? {
            Handle::File(file) if file.may_stat => Ok(Meta::of(&*file.fd)?),
            Handle::File(file) => Err(self.refuse(file, FsRights::READ)),
            Handle::Dir(dir) => self.ctx.meta_at(dir, ".", false),
        }
    }

    /// Refuses an operation on an open file because a right is missing.
    fn refuse(&self, file: &FileHandle, missing: FsRights) -> Fail {
        let policy = &*self.ctx.policy;
        let name = policy.name_to_blame(&*file.fd);
        policy.refuse(file.root, missing, name.as_deref())
    }

    fn push_output(
        &mut self,
        descriptor: &Resource<Descriptor>,
        target: OutputTarget,
    ) -> FsOutcome<Resource<DynOutputStream>> {
        let file = Arc::clone(self.file(descriptor)?.writable()?);
        let stream: DynOutputStream = Box::new(FileOutput {
            file,
            target,
            failed: false,
        });
        Ok(self.table.push(stream).map_err(|_| Code::Quota)?)
    }

    fn sync_handle(&self, descriptor: &Resource<Descriptor>, whole: bool) -> FsOutcome<()> {
        match handle::get(self.table, descriptor)? {
            // Nothing can have been written through it.
            Handle::File(file) if file.writable().is_err() => Ok(()),
            Handle::File(file) if whole => Ok(rustix::fs::fsync(&*file.fd)?),
            Handle::File(file) => Ok(sys::sync_data(&*file.fd)?),
            Handle::Dir(dir) => {
                let policy = &*self.ctx.policy;
                let start = dir.asking(WRITE).start(policy, ".")?;
                Ok(rustix::fs::fsync(sys::open_directory(start, ".")?)?)
            }
        }
    }

    fn set_times_of(&self, descriptor: &Resource<Descriptor>, times: &Timestamps) -> FsOutcome<()> {
        match handle::get(self.table, descriptor)? {
            Handle::File(file) if file.may_touch => Ok(rustix::fs::futimens(&*file.fd, times)?),
            // A second name of the file forbids it, and no grant would help.
            Handle::File(file) if self.ctx.policy.rights(file.root).write => {
                Err(Code::NotPermitted.into())
            }
            Handle::File(file) => Err(self.refuse(file, WRITE)),
            Handle::Dir(dir) => self.ctx.set_times_at(dir, ".", false, times),
        }
    }
}

impl preopens::Host for FsCtxView<'_> {
    fn get_directories(&mut self) -> wasmtime::Result<Vec<(Resource<Descriptor>, String)>> {
        let policy = Arc::clone(&self.ctx.policy);
        let mut directories = Vec::new();
        // The real paths first: a program that compares objects takes those for the names.
        let real = policy.roots().map(|(id, root)| (id, root.path.clone()));
        let mut named: Vec<_> = real.chain(policy.other_paths()).collect();
        // Trees without rights last: a guest that takes the first tree around a path would not find what was granted inside one.
        named.sort_by_key(|(root, _)| policy.root(*root).handle().is_none());
        for (root, path) in named {
            let handle = Handle::Dir(DirHandle::top(root));
            let pushed = Resource::new_own(self.table.push(handle)?.rep());
            directories.push((pushed, path));
        }
        Ok(directories)
    }
}

impl types::Host for FsCtxView<'_> {
    fn convert_error_code(&mut self, error: FsError) -> wasmtime::Result<types::ErrorCode> {
        Ok(error.downcast()?.into())
    }

    fn filesystem_error_code(
        &mut self,
        error: Resource<wasmtime::Error>,
    ) -> wasmtime::Result<Option<types::ErrorCode>> {
        let error = self.table.get(&error)?;
        Ok(error
            .downcast_ref::<std::io::Error>()
            .map(|error| StockErrorCode::from(error).into()))
    }
}

impl types::HostDescriptor for FsCtxView<'_> {
    fn read_via_stream(
        &mut self,
        fd: Resource<Descriptor>,
        offset: Filesize,
    ) -> FsResult<Resource<DynInputStream>> {
        self.run(|view| {
            let file = Arc::clone(view.file(&fd)?.readable()?);
            let stream: DynInputStream = Box::new(FileInput {
                file,
                position: offset,
            });
            Ok(view.table.push(stream).map_err(|_| Code::Quota)?)
        })
    }

    fn write_via_stream(
        &mut self,
        fd: Resource<Descriptor>,
        offset: Filesize,
    ) -> FsResult<Resource<DynOutputStream>> {
        self.change(|view| view.push_output(&fd, OutputTarget::At(offset)))
    }

    fn append_via_stream(
        &mut self,
        fd: Resource<Descriptor>,
    ) -> FsResult<Resource<DynOutputStream>> {
        self.change(|view| view.push_output(&fd, OutputTarget::End))
    }

    fn advise(
        &mut self,
        fd: Resource<Descriptor>,
        offset: Filesize,
        len: Filesize,
        advice: Advice,
    ) -> FsResult<()> {
        self.run(|view| {
            let file = view.file(&fd)?;
            Ok(sys::advise(file.fd.as_fd(), offset, len, advice)?)
        })
    }

    fn sync_data(&mut self, fd: Resource<Descriptor>) -> FsResult<()> {
        self.change(|view| view.sync_handle(&fd, false))
    }

    fn get_flags(&mut self, fd: Resource<Descriptor>) -> FsResult<DescriptorFlags> {
        Ok(match handle::get(self.table, &fd)? {
            Handle::File(file) => file.flags,
            Handle::Dir(dir) => {
                let rights = self.ctx.policy.rights(dir.root);
                let mutable = rights.write || rights.create || rights.delete;
                let mutate = if mutable {
                    DescriptorFlags::MUTATE_DIRECTORY
                } else {
                    DescriptorFlags::empty()
                };
                DescriptorFlags::READ | mutate
            }
        })
    }

    fn get_type(&mut self, fd: Resource<Descriptor>) -> FsResult<DescriptorType> {
        Ok(match handle::get(self.table, &fd)? {
            Handle::File(_) => DescriptorType::RegularFile,
            Handle::Dir(_) => DescriptorType::Directory,
        })
    }

    fn set_size(&mut self, fd: Resource<Descriptor>, size: Filesize) -> FsResult<()> {
        self.change(|view| {
            let file = view.file(&fd)?.writable()?;
            Ok(rustix::fs::ftruncate(&**file, size)?)
        })
    }

    fn set_times(
        &mut self,
        fd: Resource<Descriptor>,
        accessed: NewTimestamp,
        modified: NewTimestamp,
    ) -> FsResult<()> {
        self.change(|view| view.set_times_of(&fd, &to_times(accessed, modified)?))
    }

    fn read(
        &mut self,
        fd: Resource<Descriptor>,
        len: Filesize,
        offset: Filesize,
    ) -> FsResult<(Vec<u8>, bool)> {
        self.run(|view| {
            let file = view.file(&fd)?.readable()?;
            let bytes = file::read(&**file, len, offset)?;
            let at_end = bytes.is_empty() && len > 0;
            Ok((bytes, at_end))
        })
    }

    fn write(
        &mut self,
        fd: Resource<Descriptor>,
        bytes: Vec<u8>,
        offset: Filesize,
    ) -> FsResult<Filesize> {
        self.change(|view| {
            let file = view.file(&fd)?.writable()?;
            file::write_all(file.as_fd(), &bytes, offset)?;
            Ok(bytes.len() as u64)
        })
    }

    fn read_directory(
        &mut self,
        fd: Resource<Descriptor>,
    ) -> FsResult<Resource<DirectoryEntryStream>> {
        self.run(|view| {
            let stream = view.ctx.list(&view.dir(&fd)?)?;
            let pushed = view.table.push(stream).map_err(|_| Code::Quota)?;
            Ok(Resource::new_own(pushed.rep()))
        })
    }

    fn sync(&mut self, fd: Resource<Descriptor>) -> FsResult<()> {
        self.change(|view| view.sync_handle(&fd, true))
    }

    fn create_directory_at(&mut self, fd: Resource<Descriptor>, path: String) -> FsResult<()> {
        self.change(|view| {
            let dir = view.dir(&fd)?;
            view.ctx.make_directory(&dir, &path)
        })
    }

    fn stat(&mut self, fd: Resource<Descriptor>) -> FsResult<DescriptorStat> {
        self.run(|view| Ok(to_stat(&view.meta(&fd)?)))
    }

    fn stat_at(
        &mut self,
        fd: Resource<Descriptor>,
        flags: PathFlags,
        path: String,
    ) -> FsResult<DescriptorStat> {
        self.run(|view| {
            let dir = view.dir(&fd)?;
            Ok(to_stat(&view.ctx.meta_at(&dir, &path, follows(flags))?))
        })
    }

    fn set_times_at(
        &mut self,
        fd: Resource<Descriptor>,
        flags: PathFlags,
        path: String,
        accessed: NewTimestamp,
        modified: NewTimestamp,
    ) -> FsResult<()> {
        self.change(|view| {
            let times = to_times(accessed, modified)?;
            let dir = view.dir(&fd)?;
            view.ctx.set_times_at(&dir, &path, follows(flags), &times)
        })
    }

    fn link_at(
        &mut self,
        fd: Resource<Descriptor>,
        old_flags: PathFlags,
        old_path: String,
        new_fd: Resource<Descriptor>,
        new_path: String,
    ) -> FsResult<()> {
        self.change(|view| {
            let (from, to) = (view.dir(&fd)?, view.dir(&new_fd)?);
            let follow = follows(old_flags);
            view.ctx.link(&from, follow, &old_path, &to, &new_path)
        })
    }

    fn open_at(
        &mut self,
        fd: Resource<Descriptor>,
        path_flags: PathFlags,
        path: String,
        oflags: OpenFlags,
        flags: DescriptorFlags,
    ) -> FsResult<Resource<Descriptor>> {
        self.run(|view| {
            let dir = view.dir(&fd)?;
            let request = OpenRequest::new(follows(path_flags), oflags, flags)?;
            let handle = view.ctx.open(&dir, &path, request)?;
            Ok(handle::push(view.table, handle)?)
        })
    }

    fn readlink_at(&mut self, fd: Resource<Descriptor>, path: String) -> FsResult<String> {
        self.run(|view| view.ctx.read_link(&view.dir(&fd)?, &path))
    }

    fn remove_directory_at(&mut self, fd: Resource<Descriptor>, path: String) -> FsResult<()> {
        self.change(|view| {
            let dir = view.dir(&fd)?;
            view.ctx.remove_directory(&dir, &path)
        })
    }

    fn rename_at(
        &mut self,
        fd: Resource<Descriptor>,
        old_path: String,
        new_fd: Resource<Descriptor>,
        new_path: String,
    ) -> FsResult<()> {
        self.change(|view| {
            let (from, to) = (view.dir(&fd)?, view.dir(&new_fd)?);
            view.ctx.rename(&from, &old_path, &to, &new_path)
        })
    }

    fn symlink_at(
        &mut self,
        fd: Resource<Descriptor>,
        target: String,
        path: String,
    ) -> FsResult<()> {
        self.change(|view| {
            let dir = view.dir(&fd)?;
            view.ctx.symlink(&dir, &target, &path)
        })
    }

    fn unlink_file_at(&mut self, fd: Resource<Descriptor>, path: String) -> FsResult<()> {
        self.change(|view| {
            let dir = view.dir(&fd)?;
            view.ctx.unlink(&dir, &path)
        })
    }

    fn is_same_object(
        &mut self,
        a: Resource<Descriptor>,
        b: Resource<Descriptor>,
    ) -> wasmtime::Result<bool> {
        let (a, b) = (handle::get(self.table, &a)?, handle::get(self.table, &b)?);
        let policy = &*self.ctx.policy;
        Ok(match (a.id(policy), b.id(policy)) {
            (Some(a), Some(b)) => a == b,
            // A tree without rights tells nothing but that it is the same wish.
            (None, None) => a.is_same_root(b),
            _ => false,
        })
    }

    fn metadata_hash(&mut self, fd: Resource<Descriptor>) -> FsResult<MetadataHashValue> {
        self.run(|view| {
            let meta = view.meta(&fd)?;
            Ok(to_hash(&view.ctx.policy, &meta))
        })
    }

    fn metadata_hash_at(
        &mut self,
        fd: Resource<Descriptor>,
        flags: PathFlags,
        path: String,
    ) -> FsResult<MetadataHashValue> {
        self.run(|view| {
            let meta = view.ctx.meta_at(&view.dir(&fd)?, &path, follows(flags))?;
            Ok(to_hash(&view.ctx.policy, &meta))
        })
    }

    fn drop(&mut self, fd: Resource<Descriptor>) -> wasmtime::Result<()> {
        handle::delete(self.table, &fd)
    }
}

impl types::HostDirectoryEntryStream for FsCtxView<'_> {
    fn read_directory_entry(
        &mut self,
        stream: Resource<DirectoryEntryStream>,
    ) -> FsResult<Option<DirectoryEntry>> {
        self.run(|view| {
            let stream = Resource::<EntryStream>::new_borrow(stream.rep());
            view.table.get_mut(&stream)?.next()
        })
    }

    fn drop(&mut self, stream: Resource<DirectoryEntryStream>) -> wasmtime::Result<()> {
        self.table
            .delete(Resource::<EntryStream>::new_own(stream.rep()))?;
        Ok(())
    }
}

fn follows(flags: PathFlags) -> bool {
    flags.contains(PathFlags::SYMLINK_FOLLOW)
}
